#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#define INPUTS 3
#define APPLY(x, y, z) ((x) != 0u ? (y) : (z))
#include "map.glsl"
