/** A program of `worker.test.ts`. */

import { Client } from "../dist/index.js";
import { pause } from "./server.js";

const worker = new Client(process.argv[2]).log("x").worker(
  "mailer",
  async ({ event }) => {
    console.log(event.position);
    await pause(500);
  },
  { batch: 2 },
);
await worker.run();
console.log("ended");
