// Is answers.json's document one of OpenAPI 3.1, and are its answers as that says? Run by tests/web/openapi.rs.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const { document, answers } = JSON.parse(readFileSync("answers.json"));
const complain = (what, errors) => {
    console.log(what, JSON.stringify(errors, null, 1).slice(0, 2000));
    process.exitCode = 1;
};

const validator = new Validator();
const judged = await validator.validate(structuredClone(document));
if (!judged.valid) complain("the document:", judged.errors);
if (validator.version !== "3.1") complain("the document's version:", validator.version);

const numbers = Object.fromEntries(["uint", "uint8", "uint16", "uint32", "uint64", "float", "double"].map((it) => [it, true]));
const ajv = addFormats(new Ajv({ strict: false, allErrors: false, formats: numbers }));
ajv.addSchema(document, "api");
let refused = 0;
for (const { path, answer } of answers) {
    const at = ["paths", path, "get", "responses", "200", "content", "application/json", "schema"];
    const pointer = at.map((it) => it.replaceAll("~", "~0").replaceAll("/", "~1")).map(encodeURIComponent).join("/");
    const check = ajv.compile({ $ref: `api#/${pointer}` });
    if (!check(answer)) complain(path, check.errors);
    // A schema that takes everything says nothing.
    if (!check(Array.isArray(answer) ? [{}] : 7)) refused += 1;
}
if (refused === answers.length) console.log("changed answers are refused");
