#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"
#define STATES 1
#include "optim.glsl"
