#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
// The sum of all elements, whatever the size of a subgroup: each adds its invocations up,
// and one of them adds that to the result.
//
// Regenerate with: glslc --target-env=vulkan1.2 -O -Werror -o subgroup.spv subgroup.comp
layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer In { uint data[]; } source;
layout(set = 0, binding = 2, std430) buffer Out { uint data[]; } result;

void main() {
    uint sum = subgroupAdd(source.data[gl_GlobalInvocationID.x]);
    if (subgroupElect()) {
        atomicAdd(result.data[0], sum);
    }
}
