// Validates Kubernetes objects (JSON on standard input) against the schemas of kubernetes-models; prints what is wrong, a line each.
// The schemas let unknown fields pass, so this notes which fields the validator reads: one that it never reads is unknown.
function watched(value, path, notes) {
    if (value === null || typeof value !== "object")
        return value;
    const inner = Array.isArray(value) ? [] : {};
    for (const key of Object.keys(value))
        inner[key] = watched(value[key], `${path}/${key}`, notes);
    const read = new Set();
    notes.push({ path, keys: Object.keys(inner), read });
    return new Proxy(inner, { get: (target, key) => (read.add(key), target[key]) });
}

const input = [];
for await (const chunk of process.stdin)
    input.push(chunk);
for (const object of JSON.parse(Buffer.concat(input))) {
    const { apiVersion, kind, metadata } = object;
    const operator = apiVersion.startsWith("monitoring.coreos.com");
    const model = (await import(`${operator ? "@kubernetes-models/prometheus-operator" : "kubernetes-models"}/${apiVersion}`))[kind];
    const name = `${kind} ${metadata.name}`;
    if (!model) {
        console.log(`${name}: ${apiVersion} has no ${kind}`);
        continue;
    }
    const notes = [];
    try {
        model.prototype.validate.call(watched(object, "", notes));
    } catch (e) {
        console.log(`${name}: ${e.message}`);
        continue;
    }
    for (const { path, keys, read } of notes)
        for (const key of keys)
            if (!read.has(key))
                console.log(`${name}: ${path}/${key} is unknown`);
}
