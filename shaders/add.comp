#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"
#define OP(x, y) ((x) + (y))
#include "binary.glsl"
