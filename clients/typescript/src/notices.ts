/** What a worker tells its program, beside the errors that end it. */

/** Takes a line, and the fault that it tells of. */
export type Report = (message: string, fault?: unknown) => void;

/** Tells what is no error of the program; what concerns all loops is told once. */
export class Notices {
  readonly #consumer: string;
  readonly #report: Report;
  #state = "running";
  #isCutOff = false;

  constructor(consumer: string, report: Report) {
    this.#consumer = consumer;
    this.#report = report;
  }

  say(message: string, ...fault: [unknown?]): void {
    this.#report(`consumer ${this.#consumer}: ${message}`, ...fault);
  }

  /** Tells of a change of the consumer's state, which an answer has told. */
  hear(state: string): void {
    if (this.#isCutOff) {
      this.#isCutOff = false;
      this.say("the server answers again");
    }
    if (state !== this.#state) {
      this.#state = state;
      this.say(`it is ${state}`);
    }
  }

  /** Tells of an outage. */
  miss(error: Error): void {
    if (!this.#isCutOff) {
      this.#isCutOff = true;
      this.say(`trying again until the server answers: ${error.message}`);
    }
  }
}
