#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"
#define STATES 0
#include "optim.glsl"
