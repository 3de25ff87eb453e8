// Polling: frequent while data changes, with increasing intervals while it does not, paused while the page is hidden.

/** Factor by which the interval grows while the data stays the same. */
const GROWTH = 1.5;

export class Poll {
  /**
   * @param task async (signal) => true if something changed; errors are passed to `failed`
   * @param least, most shortest and longest interval in milliseconds
   * @param failed (error, milliseconds to the next attempt) => nothing
   */
  constructor(task, { least = 1000, most = 15000, failed = () => {} } = {}) {
    this.task = task;
    this.least = least;
    this.most = most;
    this.failed = failed;
    this.wait = least;
    this.timer = null;
    this.controller = new AbortController();
    this.running = false;
    this.seen = () => {
      if (document.hidden) clearTimeout(this.timer);
      else this.now();
    };
    document.addEventListener("visibilitychange", this.seen);
  }

  /** Run the task at once and schedule the next run. */
  async now() {
    if (this.running || this.controller.signal.aborted) return;
    clearTimeout(this.timer);
    this.running = true;
    try {
      this.wait = (await this.task(this.controller.signal)) ? this.least : Math.min(this.wait * GROWTH, this.most);
    } catch (error) {
      if (this.controller.signal.aborted) return;
      this.wait = Math.min(Math.max(this.wait, 1000) * GROWTH, this.most);
      this.failed(error, this.wait);
    } finally {
      this.running = false;
    }
    if (!document.hidden && !this.controller.signal.aborted && Number.isFinite(this.least)) this.timer = setTimeout(() => this.now(), this.wait);
  }

  stop() {
    this.controller.abort();
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
  }
}
