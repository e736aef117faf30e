/** A server with one consumer, as the wire of consumers says, and with faults that tests order. */

import type { Json } from "../dist/index.js";
import { type FakeAnswer, type FakeRequest, jsonAnswer, problem } from "./server.js";

interface Held {
  worker: string;
  position: number;
  tries: number;
}

interface Turn {
  turn: number;
  given: string[];
  refused: Json[];
}

/** Delivers positions, each as an event of its own. */
export class FakeConsumer {
  state = "running";
  /** Answers, or null for a cut connection, instead of the next ones; without an effect. */
  faults: Record<string, (FakeAnswer | null)[]> = {};
  /** Paths whose next answer is lost after its effect. */
  cut: string[] = [];
  /** Problems with which the next items of a kind are refused. */
  refuse: Record<string, string[]> = {};
  settled: [position: number, what: string][] = [];
  appended: Json[] = [];
  extended: string[] = [];
  definition: Json;
  readonly held = new Map<string, Held>();
  #ready: { position: number; tries: number }[];
  readonly #turns = new Map<string, Turn>();
  readonly #calls = new Map<string, number>();
  #count = 0;
  #waiting = new Set<() => void>();

  constructor(
    positions: number[],
    readonly holdMs = 30_000,
  ) {
    this.#ready = positions.map((position) => ({ position, tries: 1 }));
  }

  async answer(request: FakeRequest): Promise<FakeAnswer | null> {
    const kind = request.path.split("/").at(-1)!;
    const fault = this.faults[kind]?.shift();
    if (fault !== undefined) {
      return fault;
    }
    const answered = await this.#answer(kind, request);
    this.#notify();
    if (this.cut.includes(kind)) {
      this.cut.splice(this.cut.indexOf(kind), 1);
      return null;
    }
    return answered;
  }

  add(position: number): void {
    this.#ready.push({ position, tries: 1 });
    this.#notify();
  }

  /** Takes everything away from all workers. */
  lose(): void {
    for (const { position, tries } of this.held.values()) {
      this.#ready.push({ position, tries: tries + 1 });
    }
    this.held.clear();
    this.#notify();
  }

  /** Waits until something is so. */
  async wait(condition: () => boolean): Promise<void> {
    const endsMs = performance.now() + 60_000;
    while (!condition()) {
      if (performance.now() > endsMs) {
        throw new Error(JSON.stringify([this.settled, [...this.held]]));
      }
      await this.#change(100);
    }
  }

  #change(mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, mostMs);
      this.#waiting.add(done);
    });
  }

  #notify(): void {
    [...this.#waiting].forEach((done) => done());
  }

  async #answer(kind: string, { method, json }: FakeRequest): Promise<FakeAnswer> {
    if (kind === "next") {
      return this.#next(json);
    }
    if (kind === "extend") {
      this.extended.push(json.worker);
      const held = [...this.held.values()].filter(({ worker }) => worker === json.worker).length;
      return jsonAnswer(200, { held, hold_ms: this.holdMs });
    }
    if (kind === "append") {
      return this.#append(json);
    }
    if (method === "PUT") {
      const isNew = this.definition === undefined;
      this.definition = json;
      return jsonAnswer(isNew ? 201 : 200, {});
    }
    const counts = { lag: 0, open_keys: this.#ready.length, in_flight: this.held.size, parked: 0 };
    return jsonAnswer(200, { state: this.state, ...counts, oldest_age_ms: 1500, scanned: 99 });
  }

  async #next(sent: Json): Promise<FakeAnswer> {
    let turn = this.#turns.get(sent.worker);
    if (turn !== undefined && sent.turn < turn.turn) {
      return problem(409, "turn-passed", { turn: turn.turn });
    }
    // Another call takes the place of one that waits, also for the same turn.
    const call = (this.#calls.get(sent.worker) ?? 0) + 1;
    this.#calls.set(sent.worker, call);
    this.#notify();
    if (turn?.turn !== sent.turn) {
      turn = { turn: sent.turn, given: [], refused: [] };
      this.#turns.set(sent.worker, turn);
      for (const kind of ["done", "failed", "park", "release"]) {
        for (const item of sent[kind] ?? []) {
          this.#settle(sent.worker, kind, item, turn.refused);
        }
      }
      this.#notify();
      const endsMs = performance.now() + sent.wait_ms;
      const isIdle = (): boolean => this.#ready.length === 0 || this.state !== "running";
      while (sent.want > 0 && isIdle() && performance.now() < endsMs) {
        await this.#change(endsMs - performance.now());
        if (this.#calls.get(sent.worker) !== call) {
          return problem(409, "turn-passed", { turn: this.#turns.get(sent.worker)!.turn });
        }
      }
      while (!isIdle() && turn.given.length < sent.want) {
        this.#count += 1;
        const id = `1.${this.#count}.abc`;
        turn.given.push(id);
        this.held.set(id, { worker: sent.worker, ...this.#ready.shift()! });
      }
    }
    const { given, refused } = turn as Turn;
    const deliveries = given.filter((id) => this.held.has(id)).map((id) => this.#delivery(id));
    const told = { turn: sent.turn, state: this.state, refused, deliveries, head: 99 };
    const headers = { "Wellspring-History": "00000000000000aa" };
    return jsonAnswer(200, { ...told, hold_ms: this.holdMs }, headers);
  }

  #delivery(id: string): Json {
    const { position, tries } = this.held.get(id)!;
    const event = { position, type: "T", tags: [], data: position, recorded_at: "" };
    const keys = [`${position % 2}`];
    const effect_key = `mailer-1-${position}`;
    return { delivery: id, keys, tries, effect_key, events: [event] };
  }

  #settle(worker: string, kind: string, item: Json, refused: Json[]): void {
    const id: string = item.delivery ?? item;
    const held = this.held.get(id);
    const ordered = this.refuse[kind]?.shift();
    if (ordered !== undefined || held?.worker !== worker) {
      refused.push({ delivery: id, problem: ordered ?? "delivery-lost" });
      return;
    }
    this.held.delete(id);
    this.settled.push([held.position, item.reason === undefined ? kind : `${kind}: ${item.reason}`]);
    if (kind === "failed" || kind === "release") {
      const tries = held.tries + (kind === "failed" ? 1 : 0);
      this.#ready.push({ position: held.position, tries });
    }
  }

  #append(sent: Json): FakeAnswer {
    const { consumer, worker, delivery } = sent.settles;
    const text = JSON.stringify(sent);
    const earlier = this.appended.findIndex((done) => JSON.stringify(done) === text);
    const last = earlier < 0 ? this.appended.length + 1 : earlier + 1;
    const found = { first: last, last, head: 99, replayed: earlier >= 0 };
    if (earlier < 0) {
      const held = this.held.get(delivery);
      if (held?.worker !== worker || consumer !== "mailer") {
        return problem(409, "delivery-lost");
      }
      this.held.delete(delivery);
      this.appended.push(sent);
      this.settled.push([held!.position, "appended"]);
    }
    return jsonAnswer(200, found);
  }
}
