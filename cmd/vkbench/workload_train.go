package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench/suite"
	"vkcompute/testdata/mnist"
	"vkcompute/vk"
)

// trainFlags are those of run that only train reads.
type trainFlags struct {
	Data   string `help:"With workload train: the folder of the MNIST database's files. Without it: 2000 images that the program has with it." placeholder:"DIR" type:"path"`
	Epochs int    `default:"5" help:"With workload train: how often to go through the images." placeholder:"N"`
}

const maxEpochs = 1000

func (f *trainFlags) check(trains bool) error {
	switch {
	case !trains && f.Data != "":
		return errors.New("--data is for workload train, which is not among those to run")
	case f.Epochs < 1 || f.Epochs > maxEpochs:
		return fmt.Errorf("--epochs %d: want 1 to %d", f.Epochs, maxEpochs)
	}
	return nil
}

func (f *trainFlags) files() fs.FS {
	if f.Data == "" {
		return mnist.Files
	}
	return os.DirFS(f.Data)
}

func trainWorkload() workload {
	return workload{
		name: "train", doc: "a classifier of handwritten digits learns: its step rebuilt, cached, and replayed with another batch",
		run: runTrain,
		record: func(ctx context.Context, s *cmdbuf.Stream) (*cmdbuf.Graph, error) {
			return suite.RecordTrain(ctx, s, mnist.Files)
		},
	}
}

func runTrain(ctx context.Context, j job) (out outcome, err error) {
	err = withDevice(j, func(d *vk.Device) error {
		out.Results, err = suite.Train(ctx, d, j.options(&out), suite.TrainOptions{Files: j.train.files(), Epochs: j.train.Epochs})
		return err
	})
	out.explain("train: 784 inputs, 128 hidden, 10 classes, batches of 100, Adam; each step waited for. host is the share of the time until\n" +
		"the step was handed to the driver, accuracy the share of test images classified right.")
	return out, err
}
