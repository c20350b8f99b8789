// dradriver is a driver for dynamic resource allocation (DRA) of GPUs which do not exist.
//
// It publishes the devices gpu-0 … gpu-(N-1) of the node -node in a ResourceSlice, registers with the
// kubelet, and prepares the claims that are allocated to its devices: what it was told of each stands
// in the file -state/UID, a line "NAMESPACE/NAME DEVICE...", for as long as the claim is prepared. A claim
// that is not allocated to it, or not reserved for any pod, is refused, as a real driver would.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const api = "/apis/resource.k8s.io/v1"

type driver struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	name, node, state, endpoint, server string
	count                               int
	client                              *http.Client
}

type claim struct {
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Allocation struct {
			Devices struct {
				Results []struct {
					Request string `json:"request"`
					Driver  string `json:"driver"`
					Pool    string `json:"pool"`
					Device  string `json:"device"`
				} `json:"results"`
			} `json:"devices"`
		} `json:"allocation"`
		ReservedFor []json.RawMessage `json:"reservedFor"`
	} `json:"status"`
}

// call sends a request to the apiserver and decodes its reply into out, where that is not nil.
func (d *driver) call(method, path string, body, out any) (int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(method, d.server+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	reply, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	if err == nil && out != nil && reply.StatusCode < 300 {
		err = json.Unmarshal(text, out)
	}
	return reply.StatusCode, err
}

// publish makes the ResourceSlice unless it is there. The kubelet deletes it when it starts, and when it
// has not heard of the driver for a while.
func (d *driver) publish() error {
	devices := []any{}
	for i := 0; i < d.count; i++ {
		devices = append(devices, map[string]any{
			"name": fmt.Sprintf("gpu-%d", i),
			"attributes": map[string]any{
				"type":        map[string]string{"string": "gpu"},
				"uuid":        map[string]string{"string": fmt.Sprintf("GPU-%s-%d", d.node, i)},
				"productName": map[string]string{"string": "Fake DRA GPU"},
			},
			"capacity": map[string]any{"memory": map[string]string{"value": "16Gi"}},
		})
	}
	slice := map[string]any{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
		"metadata": map[string]any{"name": d.node + "-" + d.name},
		"spec": map[string]any{
			"driver": d.name, "nodeName": d.node, "devices": devices,
			"pool": map[string]any{"name": d.node, "generation": 1, "resourceSliceCount": 1},
		},
	}
	status, err := d.call(http.MethodPost, api+"/resourceslices", slice, nil)
	if err == nil && status != http.StatusCreated && status != http.StatusConflict {
		err = fmt.Errorf("the slice is refused: status %d", status)
	}
	return err
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DRAPlugin, Name: d.name, Endpoint: d.endpoint,
		SupportedVersions: []string{dra.DRAPluginService},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered=%t error=%q", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) prepare(c *dra.Claim) ([]*dra.Device, error) {
	var is claim
	status, err := d.call(http.MethodGet, api+"/namespaces/"+c.Namespace+"/resourceclaims/"+c.Name, nil, &is)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK || is.Metadata.UID != c.Uid {
		return nil, fmt.Errorf("no claim %s/%s has uid %s: status %d", c.Namespace, c.Name, c.Uid, status)
	}
	if len(is.Status.ReservedFor) == 0 {
		return nil, errors.New("the claim is reserved for no pod")
	}
	devices, names := []*dra.Device{}, []string{}
	for _, r := range is.Status.Allocation.Devices.Results {
		if r.Driver == d.name && r.Pool == d.node {
			devices = append(devices, &dra.Device{RequestNames: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device})
			names = append(names, r.Device)
		}
	}
	if len(devices) == 0 {
		return nil, errors.New("the claim is not allocated to devices of this driver")
	}
	line := c.Namespace + "/" + c.Name + " " + strings.Join(names, " ") + "\n"
	return devices, os.WriteFile(filepath.Join(d.state, c.Uid), []byte(line), 0o644)
}

func (d *driver) NodePrepareResources(_ context.Context, req *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	reply := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, c := range req.Claims {
		one := &dra.NodePrepareResourceResponse{}
		devices, err := d.prepare(c)
		if err != nil {
			one.Error = err.Error()
		} else {
			one.Devices = devices
		}
		log.Printf("prepare %s/%s: %d devices, error %v", c.Namespace, c.Name, len(devices), err)
		reply.Claims[c.Uid] = one
	}
	return reply, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, req *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	reply := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, c := range req.Claims {
		one := &dra.NodeUnprepareResourceResponse{}
		if err := os.Remove(filepath.Join(d.state, c.Uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			one.Error = err.Error()
		}
		log.Printf("unprepare %s/%s: %q", c.Namespace, c.Name, one.Error)
		reply.Claims[c.Uid] = one
	}
	return reply, nil
}

func listen(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	go server.Serve(listener)
	return nil
}

func client(ca, cert, key string) (*http.Client, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}, nil
}

func main() {
	d := &driver{}
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "folder of the kubelet")
	ca, cert, key := flag.String("ca", "", "certificate of the apiserver's authority"), flag.String("cert", "", "own certificate"), flag.String("key", "", "its key")
	flag.StringVar(&d.name, "name", "gpu.example.com", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.state, "state", "", "folder of the prepared claims")
	flag.StringVar(&d.server, "server", "", "address of the apiserver")
	flag.IntVar(&d.count, "count", 4, "number of devices")
	flag.Parse()
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	var err error
	if d.client, err = client(*ca, *cert, *key); err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(d.state, 0o755); err != nil {
		log.Fatal(err)
	}
	d.endpoint = filepath.Join(*kubelet, "plugins", d.name, "dra.sock")
	if err := listen(d.endpoint, func(s *grpc.Server) { dra.RegisterDRAPluginServer(s, d) }); err != nil {
		log.Fatal(err)
	}
	registry := filepath.Join(*kubelet, "plugins_registry", d.name+"-reg.sock")
	if err := listen(registry, func(s *grpc.Server) { registration.RegisterRegistrationServer(s, d) }); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for {
		if err := d.publish(); err != nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			os.Remove(registry)
			return
		case <-time.After(time.Second):
		}
	}
}
