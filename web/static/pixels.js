/* Bars and marks too narrow for anything but a colour, drawn as bytes: thousands of rectangles cost a canvas many times
   as much. Knows pixels and colours. */
'use strict';
tp.Pixels = class {
  constructor() { this.image = null; this.numbers = new Map(); this.bytes = new Map(); this.probe = null; }

  /* A clear picture of a canvas of this size, in its own pixels; `ratio` of them to one of the page's. */
  begin(canvas, pen, ratio) {
    if (!this.image || this.image.width !== canvas.width || this.image.height !== canvas.height) {
      this.image = pen.createImageData(Math.max(1, canvas.width), Math.max(1, canvas.height));
      this.words = new Uint32Array(this.image.data.buffer);
    }
    this.words.fill(0);
    this.ratio = ratio;
  }

  /* A rectangle in the page's pixels; `share` of the colour over what is there. */
  fill(x, y, width, height, colour, share) {
    var ratio = this.ratio, image = this.image, words = this.words;
    var left = Math.max(0, Math.round(x * ratio)), right = Math.min(image.width, Math.max(left + 1, Math.round((x + width) * ratio)));
    var top = Math.max(0, Math.round(y * ratio)), bottom = Math.min(image.height, Math.round((y + height) * ratio));
    if (left >= right || top >= bottom) return;
    var word = share === 1 ? this.opaque(colour) : this.blended(colour, share, words[top * image.width + left]);
    for (var row = top * image.width; row < bottom * image.width; row += image.width) {
      if (right - left > 16) words.fill(word, row + left, row + right);
      else for (var at = row + left; at < row + right; at++) words[at] = word;
    }
  }

  put(pen) { pen.putImageData(this.image, 0, 0); }

  /* Pixels as four bytes: red, green, blue, how much of it. */
  opaque(colour) {
    var found = this.numbers.get(colour);
    if (found === undefined) this.numbers.set(colour, found = new Uint32Array(new Uint8Array(this.bytesOf(colour)).buffer)[0]);
    return found;
  }

  blended(colour, share, under) {
    var own = this.bytesOf(colour), bytes = new Uint8Array(new Uint32Array([under]).buffer), made = new Uint8Array(4);
    for (var at = 0; at < 3; at++) made[at] = under ? own[at] * share + bytes[at] * (1 - share) : own[at];
    made[3] = under ? 255 : 255 * share;
    return new Uint32Array(made.buffer)[0];
  }

  bytesOf(colour) {
    if (this.bytes.has(colour)) return this.bytes.get(colour);
    if (!this.probe) {
      var canvas = document.createElement('canvas');
      canvas.width = canvas.height = 1;
      this.probe = canvas.getContext('2d', { willReadFrequently: true });
    }
    this.probe.fillStyle = colour;
    this.probe.fillRect(0, 0, 1, 1);
    this.bytes.set(colour, this.probe.getImageData(0, 0, 1, 1).data);
    return this.bytes.get(colour);
  }
};
