/** Servers for tests: the real binary as a process of its own, and a small one that misbehaves. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type Event, type Json, type Log, type RetryPolicy } from "../dist/index.js";

export const BIN = process.env["WELLSPRING_BIN"] ?? "";
export const URL_OF_SERVER = process.env["WELLSPRING_URL"] ?? "";
export const PATIENT: RetryPolicy = { attempts: 200, totalS: 20, firstS: 0.02, longestS: 0.1 };
export const QUICK: RetryPolicy = { attempts: 5, totalS: 5, firstS: 0.01, longestS: 0.02 };

export function randomName(): string {
  return `ts-${Math.random().toString(36).slice(2, 12)}`;
}

/** A new log on the server that `clients/test` has started. */
export async function freshLog(): Promise<Log> {
  if (URL_OF_SERVER === "") {
    throw new Error("WELLSPRING_URL is not set: run clients/test");
  }
  const log = new Client(URL_OF_SERVER).log(randomName());
  await log.create();
  return log;
}

export async function collect(
  events: AsyncIterable<Event>,
  most = Number.POSITIVE_INFINITY,
): Promise<Event[]> {
  const found: Event[] = [];
  for await (const event of events) {
    found.push(event);
    if (found.length >= most) {
      break;
    }
  }
  return found;
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** The real binary on a data folder of its own; it can be killed and started again. */
export class RealServer {
  readonly folder = mkdtempSync(join(tmpdir(), "wellspring-clients-"));
  readonly data = join(this.folder, "data");
  #process: ChildProcess | undefined;

  constructor(
    readonly port: number,
    readonly flags: string[] = [],
  ) {
    if (BIN === "") {
      throw new Error("WELLSPRING_BIN is not set: run clients/test");
    }
    mkdirSync(this.data, { mode: 0o700 });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Runs a command of the tool and returns what it prints. */
  run(...words: string[]): string {
    const done = spawnSync(BIN, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    if (done.status !== 0) {
      throw new Error(done.stderr);
    }
    return done.stdout.trim();
  }

  async start(): Promise<void> {
    const log = openSync(join(this.folder, "server.log"), "a");
    const words = ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.port}`];
    words.push(...this.flags);
    const child = spawn(BIN, words, { stdio: ["ignore", log, log] });
    this.#process = child;
    for (let tries = 0; tries < 1000 && child.exitCode === null; tries += 1) {
      if (await accepts(this.port)) {
        return;
      }
      await pause(20);
    }
    throw new Error(readFileSync(join(this.folder, "server.log"), "utf8"));
  }

  /** Ends the process at once (kill -9). */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

export interface FakeRequest {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
  json: Json;
  port: number;
}

export interface FakeAnswer {
  status: number;
  headers: Record<string, string>;
  /** A list is sent piece by piece, as a stream; a number in it is a pause in ms. */
  body: string | (string | number)[];
}

/** What a test answers; null closes the connection without an answer. */
export type Answering = (request: FakeRequest) => FakeAnswer | null | Promise<FakeAnswer | null>;

/** A server that answers what a test says, and remembers what it was sent. */
export class FakeServer {
  readonly requests: FakeRequest[] = [];
  readonly #server: http.Server;

  private constructor(answer: Answering) {
    this.#server = http.createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => void this.#serve(answer, request, response, Buffer.concat(chunks)));
    });
  }

  static async start(answer: Answering): Promise<FakeServer> {
    const fake = new FakeServer(answer);
    await new Promise<void>((done) => fake.#server.listen(0, "127.0.0.1", done));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections?.();
  }

  async #serve(
    answer: Answering,
    request: http.IncomingMessage,
    response: http.ServerResponse,
    content: Buffer,
  ): Promise<void> {
    const body = content.toString("utf8");
    const seen: FakeRequest = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body,
      json: request.headers["content-type"] === "application/json" ? JSON.parse(body) : undefined,
      port: request.socket.remotePort ?? 0,
    };
    this.requests.push(seen);
    const answered = await answer(seen);
    if (answered === null) {
      request.socket.destroy();
      return;
    }
    if (typeof answered.body === "string") {
      response.writeHead(answered.status, answered.headers).end(answered.body);
      return;
    }
    response.writeHead(answered.status, answered.headers);
    for (const piece of answered.body) {
      if (typeof piece === "number") {
        await pause(piece);
      } else {
        response.write(piece);
        await pause(1);
      }
    }
    request.socket.destroy();
  }
}

/** An answer with a JSON body. */
export function jsonAnswer(
  status: number,
  document: unknown,
  headers: Record<string, string> = {},
): FakeAnswer {
  const kind = status < 400 ? "application/json" : "application/problem+json";
  return { status, headers: { "Content-Type": kind, ...headers }, body: JSON.stringify(document) };
}

/** A problem document as the server writes it. */
export function problem(
  status: number,
  slug: string,
  members: Record<string, unknown> = {},
): FakeAnswer {
  const document = { type: `/problems/${slug}`, title: slug, status, detail: "…", retry: "no" };
  return jsonAnswer(status, { ...document, ...members });
}

/** Answers requests in turn, the last for ever. */
export function inTurn(...answers: (FakeAnswer | null)[]): Answering {
  const left = [...answers];
  return () => (left.length > 1 ? left.shift() : left[0]) as FakeAnswer | null;
}

export function sseMessage(position: number, history?: string): string {
  const id = history === undefined ? `${position}` : `${position}@${history}`;
  const event = { position, type: "T", tags: [], data: 1, recorded_at: "2026-11-25T00:00:00Z" };
  return `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** A log with a history, as the contract of `Wellspring-History` describes it. */
export class FakeLog {
  constructor(
    public history: string | undefined,
    public head: number,
  ) {}

  restore(history: string | undefined, head: number): void {
    [this.history, this.head] = [history, head];
  }

  answer(request: FakeRequest): FakeAnswer {
    const told: Record<string, string> = { "Wellspring-Position": `${this.head}` };
    if (this.history !== undefined) {
      told["Wellspring-History"] = this.history;
    }
    const now = { history: this.history, head: this.head };
    const asked = request.headers["wellspring-history"];
    if (this.history !== undefined && asked !== undefined && asked !== this.history) {
      return problem(409, "another-history", now);
    }
    const { path } = request;
    const after: number = request.json?.after ?? 0;
    if (this.history !== undefined && path.endsWith("/query") && after > this.head) {
      return problem(409, "another-history", { ...now, position: after });
    }
    if (path.endsWith("/head")) {
      return jsonAnswer(200, { head: this.head }, told);
    }
    if (path.endsWith("/append")) {
      this.head += 1;
      const done = { first: this.head, last: this.head, head: this.head, replayed: false };
      return jsonAnswer(200, done, told);
    }
    if (path.endsWith("/project")) {
      const projected = { states: {}, position: this.head, appendCondition: {} };
      return jsonAnswer(200, projected, told);
    }
    const events: Json[] = [];
    for (let position = after + 1; position <= this.head; position += 1) {
      events.push({ position, type: "T", tags: [], data: 1, recorded_at: "" });
    }
    if (request.headers.accept === "text/event-stream") {
      const pieces = events.map((event) => sseMessage(event.position, this.history));
      const headers = { "Content-Type": "text/event-stream", ...told };
      return { status: 200, headers, body: [": wellspring\n\n", ...pieces] };
    }
    const page = events.slice(0, request.json?.limit ?? 100);
    const next = page.length < events.length ? page.at(-1).position : null;
    return jsonAnswer(200, { events: page, head: this.head, next }, told);
  }
}

/** Answers each connection with the next bytes of a list, the last for ever, and closes it. */
export class RawServer {
  connections = 0;
  readonly #server: net.Server;

  private constructor(answers: string[]) {
    this.#server = net.createServer((socket) => {
      let received = "";
      socket.on("error", () => undefined);
      socket.on("data", (piece) => {
        received += piece.toString("latin1");
        const [head = "", body] = received.split("\r\n\r\n", 2);
        const length = Number(/^content-length: *([0-9]+)/im.exec(head)?.[1] ?? 0);
        if (body === undefined || body.length < length) {
          return;
        }
        const answer = answers[Math.min(this.connections, answers.length - 1)];
        this.connections += 1;
        socket.end(answer ?? "");
      });
    });
  }

  static async start(...answers: string[]): Promise<RawServer> {
    const raw = new RawServer(answers);
    await new Promise<void>((done) => raw.#server.listen(0, "127.0.0.1", done));
    return raw;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
  }
}

export async function withFake(
  answer: Answering,
  use: (fake: FakeServer) => Promise<void>,
): Promise<void> {
  const fake = await FakeServer.start(answer);
  try {
    await use(fake);
  } finally {
    fake.stop();
  }
}

export async function withRaw(
  answers: string[],
  use: (raw: RawServer) => Promise<void>,
): Promise<void> {
  const raw = await RawServer.start(...answers);
  try {
    await use(raw);
  } finally {
    raw.stop();
  }
}
