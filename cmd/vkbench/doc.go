// Command vkbench measures what the library costs on this machine.
//
//	vkbench                    every workload on the best device
//	vkbench run launch         one workload
//	vkbench devices            what there is, and which device would be taken
//
// Exit status: 0 good, 1 a result was wrong or a run failed, 2 bad usage. Progress goes to
// standard error, and only to a terminal.
package main
