/** Short links with click statistics, on the log `main`. */

import { type Json, jsonText } from "./events.js";
import { newKey } from "./keys.js";
import type { Session } from "./session.js";
import type { Answer, Transport } from "./transport.js";

/** A link as it was created. */
export interface Link {
  shortCode: string;
  shortUrl: string;
  originalUrl: string;
  createdAt: string;
  expiresAt: string | undefined;
  tags: string[];
}

/** A link as it is now, with its clicks. */
export interface LinkDetails extends Link {
  enabled: boolean;
  /** Whether the server's settings forbid its target. */
  refused: boolean;
  clicks: number;
  visitors: number;
  bots: number;
}

/** The clicks on a link, in total, over time, and by their origin. */
export interface LinkStats {
  shortCode: string;
  clicks: number;
  visitors: number;
  bots: number;
  bucket: "hour" | "day";
  series: { start: string; clicks: number; visitors?: number }[];
  referrers: { referrer: string | null; clicks: number; excess?: number }[];
  agents: { agent: string; clicks: number }[];
}

export interface NewLink {
  alias?: string;
  deterministic?: boolean;
  expiresAt?: string;
  expiresInS?: number;
  tags?: Iterable<string>;
  key?: string;
}

export interface LinkChange {
  url?: string;
  enabled?: boolean;
  /** Null means never. */
  expiresAt?: string | null;
  tags?: Iterable<string>;
}

/** The links of a server. */
export class Links {
  readonly #transport: Transport;
  readonly #session: Session;

  constructor(transport: Transport, session: Session) {
    this.#transport = transport;
    this.#session = session;
  }

  /**
   * Creates a link, repeated under one idempotency key until the outcome is known.
   *
   * Throws `Conflict` if the alias is taken, and `Invalid` if the URL may not be a target.
   */
  async create(url: string, options: NewLink = {}): Promise<Link> {
    const sent = {
      url,
      alias: options.alias,
      deterministic: options.deterministic || undefined,
      expires_at: options.expiresAt,
      expires_in_s: options.expiresInS,
      tags: options.tags === undefined ? undefined : [...options.tags],
    };
    const headers = { "Idempotency-Key": options.key ?? (await newKey()) };
    return linkOf((await this.#call("POST", "", { sent, headers, isSafe: true })).json());
  }

  /** A link and its clicks; `NotFound` if there is none. */
  async get(code: string): Promise<LinkDetails> {
    return detailsOf((await this.#call("GET", pathOf(code))).json());
  }

  /** Changes what is given. */
  async change(code: string, change: LinkChange): Promise<LinkDetails> {
    const sent = {
      url: change.url,
      enabled: change.enabled,
      expires_at: change.expiresAt,
      tags: change.tags === undefined ? undefined : [...change.tags],
    };
    return detailsOf((await this.#call("PATCH", pathOf(code), { sent })).json());
  }

  /** Deletes a link for good. */
  async delete(code: string): Promise<void> {
    await this.#call("DELETE", pathOf(code));
  }

  /** The clicks on a link; `since` and `until` bound the series (RFC 3339). */
  async stats(
    code: string,
    options: { bucket?: "hour" | "day"; since?: string; until?: string } = {},
  ): Promise<LinkStats> {
    const { bucket = "day", since, until } = options;
    const terms = queryOf({ bucket, from: since, to: until });
    const found = (await this.#call("GET", `${pathOf(code)}/stats${terms}`)).json();
    const { short_code: shortCode, clicks, visitors, bots, series, referrers, agents } = found;
    return { shortCode, clicks, visitors, bots, bucket, series, referrers, agents };
  }

  /** All links, newest first, page by page. */
  async *list(
    options: { tag?: string; search?: string; oldestFirst?: boolean; page?: number } = {},
  ): AsyncGenerator<LinkDetails, void> {
    const { tag, search, oldestFirst = false, page = 100 } = options;
    let after: number | undefined;
    do {
      const order = oldestFirst ? "asc" : undefined;
      const terms = queryOf({ tag, search, order, limit: page, after });
      const found = (await this.#call("GET", terms)).json();
      yield* found.links.map(detailsOf);
      after = found.next ?? undefined;
    } while (after !== undefined);
  }

  async #call(
    method: string,
    path: string,
    options: { sent?: unknown; headers?: Record<string, string>; isSafe?: boolean } = {},
  ): Promise<Answer> {
    const { sent, headers } = options;
    const changes = method !== "GET";
    const answer = await this.#transport.exchange({
      method,
      path: `/api/urls${path}`,
      body: sent === undefined ? undefined : jsonText(sent),
      headers: {
        ...this.#session.identity(),
        ...this.#session.freshness(),
        ...(sent === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      isSafe: options.isSafe ?? !changes,
      changes,
    });
    this.#session.learn(answer.headers);
    const position = answer.headers.get("wellspring-position");
    if (changes && position !== null) {
      this.#session.hasWritten(Number(position));
    }
    return answer;
  }
}

function linkOf(found: Json): Link {
  return {
    shortCode: found.short_code,
    shortUrl: found.short_url,
    originalUrl: found.original_url,
    createdAt: found.created_at,
    expiresAt: found.expires_at ?? undefined,
    tags: found.tags ?? [],
  };
}

function detailsOf(found: Json): LinkDetails {
  const { enabled, refused = false, clicks, visitors, bots } = found;
  return { ...linkOf(found), enabled, refused, clicks, visitors, bots };
}

function pathOf(code: string): string {
  return `/${encodeURIComponent(code)}`;
}

function queryOf(terms: Record<string, string | number | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(terms)) {
    if (value !== undefined) {
      given.append(name, `${value}`);
    }
  }
  return given.toString() === "" ? "" : `?${given}`;
}
