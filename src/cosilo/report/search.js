"use strict";
const every = JSON.parse(document.getElementById("every").textContent);
const part = document.getElementById("search");
const box = part.querySelector("input"), told = part.querySelector("[role=status]");
const table = part.querySelector(".scroll"), rows = part.querySelector("tbody");
const most = 50;

function cell(text, place) {
  const made = document.createElement(place ? "td" : "th");
  made.textContent = text;
  if (place) made.className = "n";
  return made;
}

function find() {
  const wanted = box.value.trim().toLowerCase();
  const found = wanted ? every.rows.filter((row) => row[0].toLowerCase().includes(wanted)) : [];
  rows.replaceChildren(...found.slice(0, most).map((row) => {
    const line = document.createElement("tr");
    line.append(...row.map(cell));
    return line;
  }));
  table.hidden = !found.length;
  told.textContent = !wanted ? "" : found.length > most ? `${found.length} silos, the first ${most} are shown`
    : found.length === 1 ? "1 silo" : `${found.length} silos`;
}

part.hidden = false;
box.addEventListener("input", find);
find();
