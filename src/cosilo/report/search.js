"use strict";
const part = document.getElementById("search");
const box = part.querySelector("input"), told = part.querySelector("[role=status]");
const table = part.querySelector(".scroll"), rows = part.querySelector("tbody");
const most = 50;
let every = [];  // a list for each column, the first of names

function cell(text, place) {
  const made = document.createElement(place ? "td" : "th");
  made.textContent = text;
  if (place) made.className = "n";
  return made;
}

function find() {
  const wanted = box.value.trim().toLowerCase();
  const found = [];
  if (wanted) every[0].forEach((name, row) => name.toLowerCase().includes(wanted) && found.push(row));
  rows.replaceChildren(...found.slice(0, most).map((row) => {
    const line = document.createElement("tr");
    line.append(...every.map((column, place) => cell(column[row], place)));
    return line;
  }));
  table.hidden = !found.length;
  told.textContent = !wanted ? "" : found.length > most ? `${found.length} silos, the first ${most} are shown`
    : found.length === 1 ? "1 silo" : `${found.length} silos`;
}

// Compressed: of a hundred thousand silos it would be eight megabytes.
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
}

unpack(document.getElementById("every").textContent).then((columns) => {
  every = columns;
  box.addEventListener("input", find);
  find();
}, () => {
  box.disabled = table.hidden = true;
  told.textContent = "this browser is too old for the search; result.json has all silos";
}).finally(() => { part.hidden = false; });
