/** Accounts: tokens, keys and passwords. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Client, Forbidden, Unauthenticated } from "../dist/index.js";
import { RealServer, freePort } from "./server.js";

test("token, key and password", async (t) => {
  const server = new RealServer(await freePort());
  t.after(() => server.stop());
  const password = "correct horse bättery";
  const file = join(server.folder, "password");
  writeFileSync(file, password);
  const { data, url } = server;
  for (const [name, role] of [["ann", "admin"], ["rita", "reader"]] as const) {
    server.run("user", "add", name, "--role", role, "--password-file", file, "--data", data);
  }
  const made = server.run("token", "create", "--role", "writer", "--account", "ann", "--data", data);
  const secret = made.split("\n").at(-1)!;
  await server.start();
  await new Client(url, { basic: ["ann", password] }).log("orders").create();
  for (const credentials of [{ key: secret }, { token: async () => secret }]) {
    const log = new Client(url, credentials).log("orders");
    await log.append([{ type: "A" }]);
    await assert.rejects(log.drop(), Forbidden);
  }
  const rita = new Client(url, { basic: ["rita", password] }).log("orders");
  const followed = await rita.subscribe();
  assert.equal((await followed.next()).value!.position, 1);
  followed.close();
  await assert.rejects(rita.append([{ type: "A" }]), Forbidden);
  for (const credentials of [{}, { token: "wsk_nonsense" }]) {
    const log = new Client(url, credentials).log("orders");
    await assert.rejects(log.head(), Unauthenticated);
    await assert.rejects((await log.subscribe()).next(), Unauthenticated);
  }
  assert.throws(() => new Client(url, { token: "a", key: "b" }), RangeError);
});
