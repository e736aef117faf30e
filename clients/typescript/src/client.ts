/** The client of one server. */

import { Links } from "./links.js";
import { Log } from "./log.js";
import { DEFAULT_RETRY, type RetryPolicy } from "./retry.js";
import { Session } from "./session.js";
import { type Credentials, Transport } from "./transport.js";
import { member } from "./wire.js";

/** Credentials (one of `token`, `key`, `basic`) and settings. */
export interface ClientOptions extends Credentials {
  /** How long an attempt may take, in seconds. */
  timeoutS?: number;
  retry?: RetryPolicy;
  /**
   * No read shows less than this client has written, whichever node of several answers it; true
   * if absent.
   */
  readYourWrites?: boolean;
  /** What sends requests, instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** A client of one server. */
export class Client {
  readonly #transport: Transport;
  readonly #readYourWrites: boolean;
  readonly #logs = new Map<string, { log: Log; session: Session }>();

  constructor(url = "http://127.0.0.1:4000", options: ClientOptions = {}) {
    const { timeoutS = 30, retry = DEFAULT_RETRY, readYourWrites = true } = options;
    const { token, key, basic } = options;
    // A browser's `fetch` insists on being called as a function of its window.
    const fetcher = options.fetch ?? ((input, init) => fetch(input, init));
    this.#transport = new Transport(url, { token, key, basic }, timeoutS, retry, fetcher);
    this.#readYourWrites = readYourWrites;
  }

  /** A log by its name; the same object for the same name. Sends nothing. */
  log(name = "main"): Log {
    return this.#known(name).log;
  }

  /** The names of the logs that this client may read. */
  async logs(): Promise<string[]> {
    const answer = await this.#transport.exchange({ method: "GET", path: "/v1/logs" });
    return member(answer.json(), "logs", "array").map((log) => member(log, "name", "string"));
  }

  /** The short links of the server. */
  get links(): Links {
    return new Links(this.#transport, this.#known("main").session);
  }

  #known(name: string): { log: Log; session: Session } {
    let known = this.#logs.get(name);
    if (known === undefined) {
      const session = new Session(name, this.#readYourWrites);
      known = { log: new Log(this.#transport, name, session), session };
      this.#logs.set(name, known);
    }
    return known;
  }
}
