// Reads calls as JSON and prints for each what `verify` returned, or the name of its error.
import { readFileSync } from "node:fs";
import { webhooks } from "scheduling-client";

const verdicts = [];
for (const { body, headers, secrets, tolerance } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const options = tolerance === undefined ? {} : { tolerance };
    verdicts.push(await webhooks.verify(Buffer.from(body, "base64"), headers, secrets, options));
  } catch (error) {
    verdicts.push(error.name);
  }
}
console.log(JSON.stringify(verdicts));
