#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"
#include "float.glsl"
#include "norm.glsl"
