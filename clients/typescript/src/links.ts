/** Short links with click statistics, on the log `main`. */

import { WellspringError } from "./errors.js";
import type { Json } from "./events.js";
import { idempotencyKey } from "./keys.js";
import type { Session } from "./session.js";
import type { Answer, Transport } from "./transport.js";
import { jsonText, member, positionOf, queryText, segment, texts } from "./wire.js";

/** A link as it was created. */
export interface Link {
  shortCode: string;
  shortUrl: string;
  /** Empty if it is sealed for a data subject and not shown. */
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
  /** A whole number of seconds. */
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
      expires_in_s: options.expiresInS === undefined ? undefined : whole(options.expiresInS),
      tags: options.tags === undefined ? undefined : texts(options.tags, "tags"),
    };
    const key = await idempotencyKey(options.key);
    try {
      const headers = { "Idempotency-Key": key };
      return linkOf((await this.#call("POST", "", { sent, headers, isSafe: true })).json());
    } catch (error) {
      if (error instanceof WellspringError) {
        error.key = key;
      }
      throw error;
    }
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
      tags: change.tags === undefined ? undefined : texts(change.tags, "tags"),
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
    return {
      shortCode: member(found, "short_code", "string"),
      clicks: member(found, "clicks", "number"),
      visitors: member(found, "visitors", "number"),
      bots: member(found, "bots", "number"),
      bucket,
      series: member(found, "series", "array"),
      referrers: member(found, "referrers", "array"),
      agents: member(found, "agents", "array"),
    };
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
      yield* member(found, "links", "array").map(detailsOf);
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
    const position = positionOf(answer.headers);
    if (changes && position !== undefined) {
      this.#session.hasWritten(position);
    }
    return answer;
  }
}

function linkOf(found: Json): Link {
  return {
    shortCode: member(found, "short_code", "string"),
    shortUrl: member(found, "short_url", "string"),
    originalUrl: found.original_url === null ? "" : member(found, "original_url", "string"),
    createdAt: member(found, "created_at", "string"),
    expiresAt: found.expires_at ?? undefined,
    tags: found.tags ?? [],
  };
}

function detailsOf(found: Json): LinkDetails {
  return {
    ...linkOf(found),
    enabled: member(found, "enabled", "boolean"),
    refused: found.refused ?? false,
    clicks: member(found, "clicks", "number"),
    visitors: member(found, "visitors", "number"),
    bots: member(found, "bots", "number"),
  };
}

function pathOf(code: string): string {
  return `/${segment(code, "the code of a link")}`;
}

function queryOf(terms: Record<string, string | number | undefined>): string {
  return queryText(Object.entries(terms));
}

function whole(seconds: number): number {
  if (!Number.isInteger(seconds)) {
    throw new RangeError(`expiresInS must be a whole number of seconds, not ${seconds}`);
  }
  return seconds;
}
