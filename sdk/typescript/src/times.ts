import { SHAPES } from "./generated/tables.js";

/**
 * Where a JSON value has instants. 1: the value is one. A text: as the schema of this name. A list:
 * as all of its entries. An object: by field; `*` stands for every field. Arrays are as their items.
 */
export type Shape = 1 | string | readonly Shape[] | { readonly [field: string]: Shape };

const INSTANT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?)(Z|[+-]\d{2}:?\d{2})$/;

/** Replaces the instants in a parsed JSON value by dates, and returns it. */
export function readTimes(value: unknown, shape: Shape | undefined): unknown {
  if (shape === undefined || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => readTimes(item, shape));
  if (shape === 1) return typeof value === "string" ? readInstant(value) : value;
  if (typeof shape === "string") return readTimes(value, SHAPES[shape]);
  if (isList(shape)) return shape.reduce(readTimes, value);
  if (typeof value !== "object") return value;
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys("*" in shape ? fields : shape)) {
    const inner = shape[name] ?? shape["*"];
    if (Object.hasOwn(fields, name)) fields[name] = readTimes(fields[name], inner);
  }
  return fields;
}

function isList(shape: Shape): shape is readonly Shape[] {
  return Array.isArray(shape);
}

/** Reads `2026-11-20T09:30:00+0000` too, which not every browser does; other texts stay. */
function readInstant(text: string): Date | string {
  const found = INSTANT.exec(text);
  if (!found) return text;
  const [, time, zone = ""] = found;
  return new Date(`${time}${zone.replace(/(\d{2}):?(\d{2})$/, "$1:$2")}`);
}
