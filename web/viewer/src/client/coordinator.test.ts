import { expect, test } from "vitest";
import { FakeFactory, type FakeWorker } from "../../test/fake-workers.js";
import type { RunResponse } from "../generated/protocol.js";
import { Coordinator } from "./coordinator.js";
import { SILENT } from "./faults.js";

const PLANNED = { kind: "planned", id: 1, title: "run" } as unknown as RunResponse;

test("a request whose idle worker had ended is sent to a new worker", async () => {
  const factory = new FakeFactory();
  const coordinator = new Coordinator(factory);
  const [dead] = factory.workers as [FakeWorker];
  const planned = coordinator.plan([]);
  dead.emit({ kind: "crashed", failure: SILENT, unused: true });
  const [fresh] = factory.alive as [FakeWorker];
  expect(dead.ended).toBe(true);
  expect(fresh).not.toBe(dead);
  expect(fresh.sent).toEqual(dead.sent);
  expect(coordinator.renewed.peek()).toBe(1);
  fresh.emit({ kind: "run", response: PLANNED });
  expect((await planned).title).toBe("run");
});

test("a crash during a request is told, and the next request goes to a new worker", async () => {
  const factory = new FakeFactory();
  const coordinator = new Coordinator(factory);
  const [worker] = factory.workers as [FakeWorker];
  const planned = coordinator.plan([]);
  worker.crash("boom");
  await expect(planned).rejects.toMatchObject({ message: "boom" });
  expect(factory.alive).toHaveLength(1);
  expect(factory.alive[0]?.sent).toEqual([]);
});
