module tapeproxy.invalid/matrix

go 1.19
