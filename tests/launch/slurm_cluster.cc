#include "tests/launch/slurm_cluster.h"

#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "src/base/clock.h"

namespace seto::testing {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  const std::string whole(name);
  return whole.substr(0, whole.find('.'));
}

std::string random_key() { return run({"sh", "-c", "head -c 512 /dev/urandom | od -An -tx1 | tr -d ' \\n'"}).text; }

std::string line(const std::string& name, const std::string& value) { return name + "=" + value + "\n"; }

}  // namespace

std::string SlurmCluster::missing() {
  for (const char* program : {"munged", "slurmctld", "slurmd", "srun", "setpriv"})
    if (found({program}).empty()) return "slurmctld slurmd slurm-client munge (./dev test installs them)";
  if (geteuid() != 0) return "root";
  return getpwnam("munge") == nullptr ? "the user munge (a package makes it)" : "";
}

SlurmCluster::SlurmCluster() {
  // munged refuses files that others can write, and it must be able to enter the scratch directory.
  const passwd* const user = getpwnam("munge");
  const std::string munge = scratch_ / "munge";
  fs::permissions(scratch_.path(), fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  fs::create_directory(munge);
  (void)scratch_.write("munge/key", random_key());
  fs::permissions(munge + "/key", fs::perms::owner_read);
  for (const std::string& path : {munge, munge + "/key"})
    if (chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) return;
  fs::permissions(munge, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  write_configuration();
  variables_ = {std::string("SLURM_CONF=") + (scratch_ / "slurm.conf")};
  munge_ = std::make_unique<Program>(
      std::vector<std::string>{found({"setpriv"}), "--reuid", "munge", "--regid", "munge", "--clear-groups", found({"munged"}),
                               "--foreground", "--socket=" + munge + "/socket", "--key-file=" + munge + "/key",
                               "--pid-file=" + munge + "/pid", "--log-file=" + munge + "/log", "--seed-file=" + munge + "/seed"});
  if (!munge_->writes("work thread")) return;
  controller_ = std::make_unique<Program>(std::vector<std::string>{found({"slurmctld"}), "-D", "-c", "-v"}, variables_);
  if (!controller_->writes("Running as primary controller")) return;
  node_ = std::make_unique<Program>(std::vector<std::string>{found({"slurmd"}), "-D", "-N", host_name()}, variables_);
  if (!node_->writes("slurmd started")) return;
  // srun waits until the node has registered with the controller.
  const Deadline until = Deadline::after_ms(30'000);
  while (!up_ && !until.passed()) up_ = run({"srun", "--immediate=10", "-n", "1", "true"}, variables_).status == 0;
}

void SlurmCluster::write_configuration() {
  const std::string host = host_name();
  std::string text;
  text += line("ClusterName", "seto") + line("SlurmctldHost", host + "(127.0.0.1)");
  text += line("SlurmctldPort", std::to_string(free_port())) + line("SlurmdPort", std::to_string(free_port()));
  text += line("AuthType", "auth/munge") + line("AuthInfo", std::string("socket=") + (scratch_ / "munge/socket"));
  text += line("SlurmUser", "root") + line("StateSaveLocation", scratch_ / "state") + line("SlurmdSpoolDir", scratch_ / "spool");
  text += line("SlurmctldPidFile", scratch_ / "slurmctld.pid") + line("SlurmdPidFile", scratch_ / "slurmd.pid");
  text += line("ProctrackType", "proctrack/linuxproc") + line("TaskPlugin", "task/none") + line("SwitchType", "switch/none");
  text += line("SelectType", "select/cons_tres") + line("MpiDefault", "none") + line("ReturnToService", "2");
  text += line("SlurmdParameters", "config_overrides") + line("AccountingStorageType", "accounting_storage/none");
  text += std::string("NodeName=").append(host) + " NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN\n";
  text += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  fs::create_directory(scratch_ / "state");
  fs::create_directory(scratch_ / "spool");
  (void)scratch_.write("slurm.conf", text);
}

std::string SlurmCluster::log() const {
  std::string text;
  for (const Program* program : {munge_.get(), controller_.get(), node_.get()})
    if (program != nullptr) text += program->text() + "\n";
  return text;
}

Ended SlurmCluster::srun(const std::vector<std::string>& arguments, const std::vector<std::string>& variables) const {
  std::vector<std::string> words = {"srun"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> all = variables_;
  all.insert(all.end(), variables.begin(), variables.end());
  return run(words, all);
}

}  // namespace seto::testing
