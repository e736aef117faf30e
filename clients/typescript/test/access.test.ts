/** Accounts (tokens, keys and passwords), and TLS. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, Forbidden, Unauthenticated, Untrusted } from "../dist/index.js";
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

test("a certificate is trusted if its authority is", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "wellspring-clients-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certificate, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const words =
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 " +
    "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost";
  const made = spawnSync("openssl", [...words.split(" "), "-keyout", key, "-out", certificate]);
  assert.equal(made.status, 0, String(made.stderr));
  const server = new RealServer(await freePort(), ["--tls-cert", certificate, "--tls-key", key]);
  t.after(() => server.stop());
  await server.start();
  const url = `https://127.0.0.1:${server.port}`;
  await assert.rejects(new Client(url).log().head(), Untrusted);
  // Node reads its authorities when it starts.
  const program = `
    import { Client } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url))};
    await new Client("${url}").log().append([{ type: "A" }]);`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate };
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", program], { env });
  assert.equal(done.status, 0, String(done.stderr));
});
