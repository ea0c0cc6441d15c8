export type { ChangeFeed, ChangeType, FollowedChange, FollowOptions } from "./changes.js";
export { Client } from "./client.js";
export {
  type ErrorCode,
  isError,
  NetworkError,
  SchedulingError,
  VerificationRequired,
} from "./errors.js";
export type * from "./generated/types.js";
export type { List, ListOperation } from "./lists.js";
export type { Answer, CallOptions, ClientOptions, Input, Operation } from "./transport.js";
export * as webhooks from "./webhooks.js";
