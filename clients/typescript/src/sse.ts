/** Server-sent events (WHATWG HTML, 9.2.6), parsed as they arrive. */

/** A complete message. */
export interface Message {
  event: string;
  id: string | undefined;
  data: string;
}

/** Turns bytes into messages. A message that breaks off is never returned. */
export class SseParser {
  // Removes a byte order mark at the start, and keeps half a character until the rest arrives.
  readonly #decoder = new TextDecoder();
  #rest = "";
  #afterCr = false;
  #event = "";
  #id: string | undefined;
  #data: string[] = [];
  /** Comments and messages so far; the server's heartbeat is a comment. */
  signsOfLife = 0;

  /** The messages that this piece completes. */
  feed(piece: Uint8Array): Message[] {
    let text = this.#decoder.decode(piece, { stream: true });
    if (text === "") {
      return [];
    }
    const endsInCr = text.endsWith("\r");
    if (this.#afterCr && text.startsWith("\n")) {
      text = text.slice(1); // The second half of a line break.
    }
    this.#afterCr = endsInCr;
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    const messages: Message[] = [];
    for (const line of lines) {
      const message = this.#line(line);
      if (message !== undefined) {
        messages.push(message);
      }
    }
    return messages;
  }

  #line(line: string): Message | undefined {
    if (line === "") {
      return this.#complete();
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "") {
      this.signsOfLife += 1;
    } else if (name === "data") {
      this.#data.push(value);
    } else if (name === "event") {
      this.#event = value;
    } else if (name === "id" && !value.includes("\0")) {
      this.#id = value;
    }
    return undefined;
  }

  #complete(): Message | undefined {
    const [event, data] = [this.#event || "message", this.#data];
    [this.#event, this.#data] = ["", []];
    if (data.length === 0) {
      return undefined;
    }
    this.signsOfLife += 1;
    return { event, id: this.#id, data: data.join("\n") };
  }
}
