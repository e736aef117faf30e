/** A database of one file, for the tests of read models. */

import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Database, Event } from "../dist/index.js";

export interface Tables {
  places?: Record<string, string>;
  seen: [position: number, data: unknown][];
}

/** A file that is replaced at once; it understands the statements of a read model. */
export class FileDatabase implements Database<Tables> {
  sizes: number[] = [];
  /** Called at each commit, before it and after it. */
  watch: (moment: "before" | "after") => void = () => undefined;

  constructor(readonly file: string) {}

  get tables(): Tables {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, "utf8")) : { seen: [] };
  }

  async transaction(work: (db: Tables) => Promise<void>): Promise<void> {
    const tables = this.tables;
    const before = JSON.stringify(tables);
    const count = tables.seen.length;
    await work(tables);
    const after = JSON.stringify(tables);
    if (after !== before) {
      this.watch("before");
      writeFileSync(`${this.file}.new`, after);
      renameSync(`${this.file}.new`, this.file);
      this.watch("after");
      this.sizes.push(tables.seen.length - count);
    }
  }

  query(db: Tables, sql: string): { place: string }[] {
    const quoted = [...sql.matchAll(/'([^']*)'/g)].map(([, text]) => text!);
    if (sql.startsWith("CREATE TABLE wellspring_cursor ")) {
      assert.equal(db.places, undefined);
      db.places = {};
    }
    assert.ok(db.places, "no such table");
    const name = quoted.at(sql.startsWith("INSERT") ? 0 : -1)!;
    if (sql.startsWith("SELECT place ")) {
      const place = db.places[name];
      return place === undefined ? [] : [{ place }];
    }
    if (sql.startsWith("DELETE ")) {
      delete db.places[name];
    } else if (sql.startsWith("INSERT ")) {
      assert.equal(db.places[name], undefined);
      db.places[name] = quoted[1]!;
    } else if (quoted.length === 2) {
      db.places[name] = quoted[0]!;
    }
    return [];
  }
}

export function store(db: Tables, event: Event): void {
  db.seen.push([event.position, event.data]);
}
