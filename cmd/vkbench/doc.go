// Command vkbench measures what the library costs on this machine, and what the device
// under it can do.
//
//	vkbench                    every workload on the best device, in under two minutes
//	vkbench run launch         one workload; --format json keeps the figures
//	vkbench compare OLD NEW    what became of the figures of one report in another
//	vkbench report FILE…       one HTML page of reports
//	vkbench devices            what there is, and which device would be taken
//	vkbench doctor             why there is none, and what to do
//	vkbench graph WORKLOAD     the graph it records, with its barriers and their reasons
//	vkbench trace WORKLOAD     the times of one replay's operations on the device
//	vkbench replay FILE        a saved graph on this device
//	vkbench tune               which workgroups and tiles suit this device, kept for all its streams
//	vkbench view [SCENE]       a window; every frame is one replay (build tag glfw)
//
// Exit status: 0 good, 1 a result was wrong or a run failed, 2 bad usage. Progress goes to
// standard error, and only to a terminal.
package main
