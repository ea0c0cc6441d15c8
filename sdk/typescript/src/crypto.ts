/** WebCrypto of browsers and of other runtimes. */
export const webcrypto = globalThis.crypto;
