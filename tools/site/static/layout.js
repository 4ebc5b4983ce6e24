// Live layouts: choose the parameters, point at an element (or move to it by the arrow keys), and read where it lies.
// The maps are in the page as JSON, made by ptxgen's own layouts (tools/site/layouts.py). No framework.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CELL = 17;
  const HEAD = 26;
  const SIDE = 40;
  // Paul Tol's "light" scheme, as in ptxgen's pictures: distinguishable with any color vision under black text.
  const FILLS = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00",
    "#5C86AE", "#C46F54", "#C2B36C", "#D38A99", "#7CB4D1", "#37977C", "#98A62A", "#8A8A00"];

  const element = (name, attributes = {}, text = "") => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== "") made.textContent = text;
    return made;
  };
  const drawn = (name, attributes, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== "") made.textContent = text;
    return made;
  };
  const shown = (name, value) => (name.endsWith("address") ? `0x${value.toString(16)}` : String(value));

  class Live {
    constructor(root, number) {
      this.root = root;
      this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      this.id = `live-${this.data.kind}-${number}`;
      this.at = 0;
      this.controls();
      this.choose();
    }

    select(label, values, change) {
      const id = `${this.id}-${label.replace(/\W+/g, "-")}`;
      const box = element("span", { class: "live-control" });
      box.append(element("label", { for: id }, label));
      const select = element("select", { id });
      for (const value of values) select.append(element("option", { value }, value));
      select.addEventListener("change", change);
      box.append(select);
      this.bar.append(box);
      return select;
    }

    controls() {
      this.bar = element("div", { class: "live-bar" });
      this.root.append(this.bar);
      this.selects = this.data.controls.map((each) => this.select(each.name, each.values, () => this.choose()));
      this.color = this.select("color by", [this.data.color], () => this.draw());
      this.find = element("input", { id: `${this.id}-find`, size: "8", autocomplete: "off", spellcheck: "false" });
      const box = element("span", { class: "live-control" });
      this.findLabel = element("label", { for: `${this.id}-find` }, "find");
      box.append(this.findLabel, this.find);
      this.bar.append(box);
      this.find.addEventListener("input", () => this.findElement());
      this.readout = element("output", { class: "live-readout", "aria-live": "polite", id: `${this.id}-readout` });
      this.frame = element("div", { class: "live-frame" });
      this.note = element("p", { class: "live-note" });
      const keys = "Point at an element, or focus the picture and use the arrow keys, Home and End. Frames mark all " +
        "elements with the value of the one you point at; colors repeat after 16 values.";
      this.root.append(this.readout, this.frame, this.note, element("p", { class: "live-help" }, keys));
    }

    choose() {
      const key = this.selects.map((each) => each.value).join(" ");
      this.map = this.data.variants[key];
      if (!this.map) {
        this.readout.textContent = `There is no layout ${key}: ptxgen refuses this combination.`;
        this.frame.replaceChildren();
        this.note.textContent = "";
        return;
      }
      const fields = Object.keys(this.map.fields);
      const color = fields.includes(this.color.value) ? this.color.value : fields.includes(this.data.color) ? this.data.color : fields[0];
      this.color.replaceChildren(...fields.map((value) => element("option", { value }, value)));
      this.color.value = color;
      this.searched = ["address", "thread", "lane"].find((each) => fields.includes(each)) || fields[0];
      this.findLabel.textContent = `find ${this.searched}`;
      this.note.textContent = this.map.notes.join(" ");
      this.draw();
    }

    // Elements lie in the order of rows; a map with holes would break this, and Python's tests hold that none has.
    draw() {
      const [rows, columns] = this.map.labels;
      const field = this.map.fields[this.color.value];
      const values = new Map([...new Set(field)].sort((a, b) => a - b).map((value, index) => [value, index]));
      const width = SIDE + columns.length * CELL + 4;
      const height = HEAD + rows.length * CELL + 4;
      const svg = drawn("svg", {
        viewBox: `0 0 ${width} ${height}`, width, height, tabindex: "0", role: "img",
        "aria-label": `${this.map.title}: ${rows.length} ${this.map.axes[0]} by ${columns.length} ${this.map.axes[1]}, colored by ${this.color.value}`,
        "aria-describedby": this.readout.id,
      });
      svg.append(drawn("text", { x: 0, y: 10, class: "live-axis" }, `${this.map.axes[0]} ↓  ${this.map.axes[1]} →`));
      const step = columns.length > 16 ? 4 : 1;
      columns.forEach((label, index) => {
        if (index % step === 0) {
          svg.append(drawn("text", { x: SIDE + index * CELL + CELL / 2, y: HEAD - 5, class: "live-label live-top" }, label));
        }
      });
      rows.forEach((label, index) => {
        svg.append(drawn("text", { x: SIDE - 5, y: HEAD + index * CELL + 12, class: "live-label live-side" }, label));
      });
      this.cells = field.map((value, index) => {
        const [row, column] = [Math.floor(index / columns.length), index % columns.length];
        const cell = drawn("rect", {
          x: SIDE + column * CELL, y: HEAD + row * CELL, width: CELL - 1, height: CELL - 1,
          fill: FILLS[values.get(value) % FILLS.length], "data-index": index,
        });
        svg.append(cell);
        return cell;
      });
      this.cursor = drawn("rect", { class: "live-at", width: CELL + 1, height: CELL + 1 });
      svg.append(this.cursor);
      svg.addEventListener("pointermove", (event) => this.pointed(event));
      svg.addEventListener("pointerdown", (event) => this.pointed(event));
      svg.addEventListener("keydown", (event) => this.moved(event));
      this.frame.replaceChildren(svg);
      this.show(Math.min(this.at, this.cells.length - 1));
    }

    pointed(event) {
      const index = event.target.dataset.index;
      if (index !== undefined) this.show(Number(index));
    }

    moved(event) {
      const [rows, columns] = this.map.labels.map((each) => each.length);
      const row = Math.floor(this.at / columns);
      const column = this.at % columns;
      const to = {
        ArrowLeft: [row, Math.max(column - 1, 0)], ArrowRight: [row, Math.min(column + 1, columns - 1)],
        ArrowUp: [Math.max(row - 1, 0), column], ArrowDown: [Math.min(row + 1, rows - 1), column],
        Home: [row, 0], End: [row, columns - 1],
      }[event.key];
      if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.show(to[0] * columns + to[1]);
    }

    findElement() {
      const asked = Number(this.find.value);
      if (!this.map || this.find.value.trim() === "") return;
      const index = this.map.fields[this.searched].indexOf(asked);
      if (index >= 0) this.show(index);
      else this.readout.textContent = `no element has ${this.searched} ${this.find.value}`;
    }

    show(index) {
      this.at = index;
      const { axes, labels, fields } = this.map;
      const columns = labels[1].length;
      const same = fields[this.color.value];
      this.cells.forEach((cell, other) => {
        cell.classList.toggle("live-same", same[other] === same[index] && other !== index);
      });
      this.cursor.setAttribute("x", SIDE + (index % columns) * CELL - 1);
      this.cursor.setAttribute("y", HEAD + Math.floor(index / columns) * CELL - 1);
      const count = same.filter((value) => value === same[index]).length;
      const place = `${axes[0]} ${labels[0][Math.floor(index / columns)]}, ${axes[1]} ${labels[1][index % columns]}`;
      const said = Object.entries(fields).map(([name, values]) => `${name} ${shown(name, values[index])}`);
      this.readout.textContent = `${place}: ${said.join(", ")} (${count} with this ${this.color.value})`;
    }
  }

  document.querySelectorAll(".live-layout").forEach((root, number) => new Live(root, number));
})();
