/** A program of `read_model.test.ts` that kills itself at a commit: before it, or after it. */

import { Client } from "../dist/index.js";
import { FileDatabase, store } from "./file_database.js";
import { URL_OF_SERVER } from "./server.js";

const [log = "", file = "", commits, deadly] = process.argv.slice(2);
const database = new FileDatabase(file);
let left = Number(commits);
database.watch = (moment) => {
  left -= moment === "before" ? 1 : 0;
  if (left === 0 && moment === deadly) {
    process.kill(process.pid, "SIGKILL");
  }
};
await new Client(URL_OF_SERVER).log(log).readModel("seen", database).follow(store);
