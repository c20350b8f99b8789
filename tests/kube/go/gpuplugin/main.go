// gpuplugin is a device plugin that hands out GPUs which do not exist.
//
// It serves the kubelet's device plugin API for nvidia.com/gpu with the devices
// gpu-0 … gpu-(N-1), tells each container its own in NVIDIA_VISIBLE_DEVICES (for
// example.com/nic: nic-0 … in NIC_VISIBLE_DEVICES), and registers again whenever the kubelet makes its socket anew. A device whose
// index stands in the file -unhealthy (numbers between blanks) is reported
// Unhealthy within a second, and Healthy again when its number is gone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pollInterval = 500 * time.Millisecond

type plugin struct {
	api.UnimplementedDevicePluginServer
	name          string // of a device
	variable      string
	count         int
	unhealthyFile string
}

func (p *plugin) devices() []*api.Device {
	bad := map[string]bool{}
	if text, err := os.ReadFile(p.unhealthyFile); err == nil {
		for _, index := range strings.Fields(string(text)) {
			bad[p.name+"-"+index] = true
		}
	}
	list := make([]*api.Device, p.count)
	for i := range list {
		list[i] = &api.Device{ID: fmt.Sprintf("%s-%d", p.name, i), Health: api.Healthy}
		if bad[list[i].ID] {
			list[i].Health = api.Unhealthy
		}
	}
	return list
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var sent []*api.Device
	for {
		if now := p.devices(); !reflect.DeepEqual(now, sent) {
			if err := stream.Send(&api.ListAndWatchResponse{Devices: now}); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

func (p *plugin) Allocate(_ context.Context, req *api.AllocateRequest) (*api.AllocateResponse, error) {
	resp := &api.AllocateResponse{}
	for _, c := range req.ContainerRequests {
		resp.ContainerResponses = append(resp.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{p.variable: strings.Join(c.DevicesIds, ",")},
		})
	}
	return resp, nil
}

func register(ctx context.Context, kubelet, endpoint, resource string) error {
	conn, err := grpc.NewClient("unix://"+kubelet,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource,
	})
	return err
}

// The kubelet empties its plugin folder when it starts, so a socket that went
// away is served anew before registering.
func serve(p *plugin, socket string) (*grpc.Server, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	return server, nil
}

// identity changes when the kubelet makes its socket anew; 0 while there is none.
func identity(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino ^ uint64(info.ModTime().UnixNano())
}

func main() {
	dir := flag.String("dir", api.DevicePluginPath, "the kubelet's plugin folder")
	count := flag.Int("count", 4, "how many GPUs")
	resource := flag.String("resource", "nvidia.com/gpu", "resource name")
	unhealthy := flag.String("unhealthy", "", "file with the numbers of the unhealthy GPUs")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	p := &plugin{name: path.Base(*resource), count: *count, unhealthyFile: *unhealthy}
	p.variable = strings.ToUpper(p.name) + "_VISIBLE_DEVICES"
	if p.name == "gpu" {
		p.variable = "NVIDIA_VISIBLE_DEVICES"
	}
	endpoint := "gpuq-test-" + p.name + ".sock"
	socket, kubelet := filepath.Join(*dir, endpoint), filepath.Join(*dir, "kubelet.sock")

	var server *grpc.Server
	var registered uint64
	for ctx.Err() == nil {
		if now := identity(kubelet); now != 0 && (now != registered || identity(socket) == 0) {
			if server != nil {
				server.Stop()
			}
			var err error
			if server, err = serve(p, socket); err != nil {
				log.Fatalf("serving %s: %v", socket, err)
			}
			if err = register(ctx, kubelet, endpoint, *resource); err != nil {
				log.Printf("registering at %s: %v; trying again", kubelet, err)
			} else {
				log.Printf("registered %d x %s", *count, *resource)
				registered = now
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	if server != nil {
		server.Stop()
	}
}
