import assert from "node:assert/strict";
import { test } from "node:test";
import { type Message, SseParser } from "../dist/sse.js";

const BYTES = new TextEncoder().encode(
  '\ufeff: wellspring\n\nid: 1\ndata: {"a":\ndata: 1}\n\nevent: position\r\nid: 9@ab\r\n' +
    'data: {"position":9}\r\n\r\n: heartbeat\r\rid:10\rdata:ö\r\rid: 11\r\ndata:\r\n\n' +
    "data: broken off",
);
const MESSAGES: Message[] = [
  { event: "message", id: "1", data: '{"a":\n1}' },
  { event: "position", id: "9@ab", data: '{"position":9}' },
  { event: "message", id: "10", data: "ö" },
  { event: "message", id: "11", data: "" },
];

test("messages are the same however they are cut", () => {
  for (let size = 1; size <= BYTES.length; size += 1) {
    const parser = new SseParser();
    const found: Message[] = [];
    for (let at = 0; at < BYTES.length; at += size) {
      found.push(...parser.feed(BYTES.subarray(at, at + size)));
    }
    assert.deepEqual(found, MESSAGES, `pieces of ${size}`);
  }
});
