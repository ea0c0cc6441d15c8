/** WebCrypto of Node.js: version 18 does not have it as a global. */
export { webcrypto } from "node:crypto";
