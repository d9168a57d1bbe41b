#version 450

// Does nothing: what a launch costs without any work in it.

layout(local_size_x = 64, local_size_x_id = 0) in;

void main() {}
