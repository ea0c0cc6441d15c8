// Solves an ALTCHA challenge in a worker: the number for which SHA-256(salt + number) is the
// challenge. Posts the solution, or null.

const words = new TextEncoder();

async function solve({ algorithm, challenge, maxnumber, salt, signature }) {
  const wanted = Uint8Array.from(challenge.match(/../g), (byte) => parseInt(byte, 16));
  for (let number = 0; number <= maxnumber; number++) {
    const digest = await crypto.subtle.digest(algorithm, words.encode(salt + number));
    const found = new Uint8Array(digest);
    if (found.every((byte, place) => byte === wanted[place])) {
      return btoa(JSON.stringify({ algorithm, challenge, number, salt, signature }));
    }
  }
  return null;
}

onmessage = async ({ data }) => postMessage(await solve(data));
