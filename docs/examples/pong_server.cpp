// Serves Pong to the league. Two paddles return a ball. Who lets it through three times has lost.
//   protoc -I proto --cpp_out=pong --grpc_out=pong \
//     --plugin=protoc-gen-grpc=$(command -v grpc_cpp_plugin) league/v1/games.proto
//   g++ -std=c++17 -O2 -I pong docs/examples/pong_server.cpp pong/league/v1/*.cc \
//     -o pong/server $(pkg-config --libs grpc++ protobuf)
//   pong/server PORT
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <unordered_map>

#include "league/v1/games.grpc.pb.h"

namespace v1 = league::v1;

enum Key { UP = 1, DOWN = 2 };
constexpr int OBSERVATION = 8, TERMS = 2, POINTS = 3;
constexpr float REACH = 0.2f, PADDLE = 0.06f, SPEED = 0.05f;

struct Pong {
  uint32_t luck = 0, limit = 0, frames = 0;
  float x = 0, y = 0, vx = 0, vy = 0;  // the ball: seat 0 is at x = -1, seat 1 at x = 1
  float paddle[2] = {0, 0};
  float rewards[2][TERMS] = {};  // returned, point
  int points[2] = {0, 0};
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;

  Pong() = default;
  Pong(uint32_t seed, uint32_t max_frames) : luck(seed), limit(max_frames) { serve(seed & 1); }

  float draw() {  // in [-1, 1], from the seed alone
    luck = luck * 1664525u + 1013904223u;
    return (luck >> 8) / 8388608.0f - 1;
  }

  void serve(bool right) {
    x = 0, y = draw() / 2, vx = right ? SPEED : -SPEED, vy = draw() * SPEED;
  }

  void step(const uint32_t* keys) {
    std::fill(&rewards[0][0], &rewards[0][0] + 2 * TERMS, 0.0f);
    for (int seat : {0, 1}) {
      float way = bool(keys[seat] & UP) - float(bool(keys[seat] & DOWN));
      paddle[seat] = std::clamp(paddle[seat] + way * PADDLE, -1.0f, 1.0f);
    }
    x += vx, y += vy;
    if (std::abs(y) > 1) y = std::copysign(2.0f, y) - y, vy = -vy;
    if (std::abs(x) >= 1) {
      int seat = x > 0;
      float off = y - paddle[seat];
      if (std::abs(off) <= REACH) {
        x = std::copysign(1.0f, x), vx = -vx, vy = off / REACH * SPEED;
        rewards[seat][0] = 0.1f;
      } else {
        points[1 - seat]++;
        rewards[1 - seat][1] = 0.5f, rewards[seat][1] = -0.5f;
        serve(1 - seat);
      }
    }
    int lead = points[0] - points[1];
    if (std::max(points[0], points[1]) == POINTS || ++frames >= limit)
      outcome = lead > 0 ? v1::OUTCOME_SEAT_0_WON : lead < 0 ? v1::OUTCOME_SEAT_1_WON : v1::OUTCOME_DRAW;
  }

  void see(int seat, std::string* out) const {  // each seat sees itself on the left
    float side = seat ? -1 : 1, in_all = POINTS;
    float seen[OBSERVATION] = {paddle[seat], paddle[1 - seat], x * side, y, vx * side / SPEED,
                               vy / SPEED, points[seat] / in_all, points[1 - seat] / in_all};
    out->append(reinterpret_cast<const char*>(seen), sizeof seen);
  }
};

class Server final : public v1::GameService::Service {
  grpc::Status DescribeGame(grpc::ServerContext*, const v1::DescribeGameRequest*,
                            v1::DescribeGameResponse* game) override {
    game->set_contract(1);
    game->set_name("pong");
    game->set_version("1");
    game->set_seats(2);
    game->set_observation_size(OBSERVATION);
    game->set_action_kind(v1::ACTION_KIND_KEYS);
    for (auto name : {"up", "down"}) game->add_action_names(name);
    for (auto name : {"returned", "point"}) game->add_reward_terms(name);
    game->set_frames_per_second(15);
    game->set_max_frames(600);
    return grpc::Status::OK;
  }

  grpc::Status Play(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::PlayResponse, v1::PlayRequest>* stream) override {
    std::unordered_map<uint32_t, Pong> matches;  // by row
    v1::PlayRequest request;
    while (stream->Read(&request)) {
      const auto& begin = request.begin();
      const auto& step = request.step();
      const auto& rows = request.has_begin() ? begin.rows() : step.rows();
      v1::PlayResponse response;
      for (int n = 0; n < rows.size(); n++) {
        Pong& match = matches[rows[n]];
        if (request.has_begin())
          match = Pong(begin.seeds(n), begin.max_frames());
        else
          match.step(step.actions().data() + 2 * n);
        for (int seat : {0, 1}) match.see(seat, response.mutable_observations());
        response.mutable_rewards()->append(reinterpret_cast<char*>(match.rewards),
                                           sizeof match.rewards);
        response.mutable_outcomes()->push_back(char(match.outcome));
      }
      stream->Write(response);
    }
    return grpc::Status::OK;
  }
};

int main(int, char** words) {
  Server games;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + words[1], grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&games);
  auto server = builder.BuildAndStart();
  if (!port) return 1;
  std::cout << "ready " << port << std::endl;
  server->Wait();
}
