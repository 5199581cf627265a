const map = new Map();
for (let i = 0; i < 60000; i++) {
  const key = "key" + (i % 5000);
  map.set(key, (map.get(key) || 0) + key.length);
}
return map.size;
