#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#define INPUTS 2
#define APPLY(x, y, z) floatBitsToUint(uintBitsToFloat(x) * uintBitsToFloat(y))
#include "map.glsl"
