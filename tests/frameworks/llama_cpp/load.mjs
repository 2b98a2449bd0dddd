// SPDX-License-Identifier: Apache-2.0
// load.mjs FOLDER MODEL [GPU]: loads the model with node-llama-cpp from FOLDER/node_modules, makes a context, evaluates a prompt.
import path from "node:path";
import {pathToFileURL} from "node:url";

const [folder, model, gpu] = process.argv.slice(2);
const {getLlama} = await import(pathToFileURL(path.resolve(folder, "node_modules/node-llama-cpp/dist/index.js")).href);
const llama = await getLlama({gpu: gpu ?? false, build: "never", skipDownload: true, progressLogs: false, logLevel: process.env.LLAMA_LOG ?? "error"});
const loaded = await llama.loadModel({modelPath: path.resolve(model), useMmap: false, ignoreMemorySafetyChecks: true,
	gpuLayers: gpu === undefined ? 0 : "max"});
// node-llama-cpp is silent while it estimates a context, and then drops what of the model's log has not come yet
for (let turn = 0; turn < 20; turn++)
	await new Promise(setImmediate);
const contextSize = Number(process.env.LLAMA_CONTEXT ?? 1024);
const context = await loaded.createContext({contextSize, sequences: 1, ignoreMemorySafetyChecks: true});
const sequence = context.getSequence();
const prompt = "The quick brown fox ".repeat(Number(process.env.LLAMA_REPEAT ?? 1));
await sequence.evaluateWithoutGeneratingNewTokens(loaded.tokenize(prompt));
console.log("gpu", llama.gpu, "tokens", sequence.nextTokenIndex);
process.exit(0);
