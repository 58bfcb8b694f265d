// compile_kernels SOURCE FOLDER DEPFILE [OPTION...] NAME [OPTION...] [NAME [OPTION...]]...
//
// Compiles SOURCE to FOLDER/NAME.spv for every NAME, checks the result as spirv-val does, and
// writes the files it read to DEPFILE, for ninja. The options are -DMACRO, -DMACRO=VALUE and
// -IFOLDER; those before the first name apply to all.
//
// The bytes are those of `glslang -V --target-env vulkan1.3 -g0`. That program spends four fifths
// of its time on the declarations of GLSL's built-in functions; here they are parsed once per file.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

namespace {

struct Options {
  std::string defines;  // lines of GLSL
  std::vector<std::string> include_folders;

  void add(std::string_view option) {
    if (option.starts_with("-I")) {
      include_folders.emplace_back(option.substr(2));
    } else {
      std::string macro(option.substr(2));
      if (const size_t equals = macro.find('='); equals != std::string::npos) macro[equals] = ' ';
      defines += "#define " + macro + "\n";
    }
  }
};

struct Kernel {
  std::string name;
  Options options;
};

struct Job {
  std::string source;
  std::string folder;
  std::string depfile;
  std::vector<Kernel> kernels;
};

// Files by path. Each is read once, however many kernels include it.
class SourceFiles {
 public:
  // Null if the file cannot be read.
  const std::string* read(const std::string& path) {
    if (const auto found = files_.find(path); found != files_.end()) return &found->second;
    std::ifstream file(path, std::ios::binary);
    if (!file) return nullptr;
    return &files_.emplace(path, std::string(std::istreambuf_iterator(file), {})).first->second;
  }

  const std::map<std::string, std::string>& all_read() const { return files_; }

 private:
  std::map<std::string, std::string> files_;
};

// Looks for included files in the folder of the file that includes them, then in the folders of -I.
class Includer : public glslang::TShader::Includer {
 public:
  Includer(SourceFiles& files, const std::vector<std::string>& folders)
      : files_(files), folders_(folders) {}

  IncludeResult* includeLocal(const char* header, const char* includer, size_t) override {
    const std::string_view path = includer;
    IncludeResult* result = include(std::string(path.substr(0, path.rfind('/'))), header);
    for (size_t i = 0; result == nullptr && i < folders_.size(); ++i) {
      result = include(folders_[i], header);
    }
    return result;
  }

  void releaseInclude(IncludeResult* result) override { delete result; }

 private:
  IncludeResult* include(const std::string& folder, const char* header) {
    const std::string path = folder + "/" + header;
    const std::string* text = files_.read(path);
    return text == nullptr ? nullptr : new IncludeResult(path, text->data(), text->size(), nullptr);
  }

  SourceFiles& files_;
  const std::vector<std::string>& folders_;
};

// Prints the reason and returns nothing if the kernel has a mistake.
std::optional<std::vector<uint32_t>> compile(const std::string& path, const std::string& text,
                                             const Options& options, SourceFiles& files) {
  constexpr auto kMessages = EShMessages(EShMsgSpvRules | EShMsgVulkanRules);
  constexpr int kVulkanDialect = 100;  // the only version of GL_KHR_vulkan_glsl there is
  constexpr int kDefaultVersion = 460;

  glslang::TShader shader(EShLangCompute);
  const char* const string = text.c_str();
  const char* const name = path.c_str();
  shader.setStringsWithLengthsAndNames(&string, nullptr, &name, 1);
  shader.setPreamble(options.defines.c_str());
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan,
                     kVulkanDialect);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_3);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_6);
  Includer includer(files, options.include_folders);
  if (!shader.parse(GetDefaultResources(), kDefaultVersion, false, kMessages, includer)) {
    std::fprintf(stderr, "%s", shader.getInfoLog());
    return std::nullopt;
  }
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(kMessages)) {
    std::fprintf(stderr, "%s", program.getInfoLog());
    return std::nullopt;
  }
  std::vector<uint32_t> code;
  glslang::SpvOptions output;
  output.stripDebugInfo = true;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), code, &output);
  return code;
}

bool validate(const std::vector<uint32_t>& code) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  tools.SetMessageConsumer([](spv_message_level_t, const char*, const spv_position_t&,
                              const char* message) { std::fprintf(stderr, "%s\n", message); });
  return tools.Validate(code);
}

bool write(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::fprintf(stderr, "%s cannot be written\n", path.c_str());
  return !file.fail();
}

std::string output_path(const Job& job, const Kernel& kernel) {
  return job.folder + "/" + kernel.name + ".spv";
}

bool build(const Job& job, const Kernel& kernel, SourceFiles& files) {
  const auto code = compile(job.source, *files.read(job.source), kernel.options, files);
  if (!code || !validate(*code)) {
    std::fprintf(stderr, "kernel %s was not compiled\n", kernel.name.c_str());
    return false;
  }
  const auto* bytes = reinterpret_cast<const char*>(code->data());
  return write(output_path(job, kernel), {bytes, code->size() * sizeof(uint32_t)});
}

// Ninja wants the first output there, which stands for all of them.
std::string dependencies(const Job& job, const SourceFiles& files) {
  const auto escaped = [](const std::string& path) {
    std::string text;
    for (const char c : path) text += c == ' ' ? std::string("\\ ") : std::string(1, c);
    return text;
  };
  std::string text = escaped(output_path(job, job.kernels.front())) + ":";
  for (const auto& [path, contents] : files.all_read()) text += " \\\n  " + escaped(path);
  return text + "\n";
}

std::optional<Job> parse(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) return std::nullopt;
  Job job{.source = arguments[0], .folder = arguments[1], .depfile = arguments[2], .kernels = {}};
  Options common;
  for (size_t i = 3; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.starts_with("-D") || argument.starts_with("-I")) {
      (job.kernels.empty() ? common : job.kernels.back().options).add(argument);
    } else if (argument.starts_with("-")) {
      return std::nullopt;
    } else {
      job.kernels.push_back({.name = argument, .options = common});
    }
  }
  if (job.kernels.empty()) return std::nullopt;
  return job;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Job> job = parse({argv + 1, argv + argc});
  if (!job) {
    std::fprintf(stderr,
                 "usage: compile_kernels SOURCE FOLDER DEPFILE [-DMACRO[=VALUE] | -IFOLDER]... "
                 "NAME [-DMACRO[=VALUE] | -IFOLDER]... [NAME ...]\n");
    return 2;
  }
  SourceFiles files;
  if (files.read(job->source) == nullptr) {
    std::fprintf(stderr, "%s cannot be read\n", job->source.c_str());
    return 1;
  }
  glslang::InitializeProcess();
  for (const Kernel& kernel : job->kernels) {
    if (!build(*job, kernel, files)) return 1;
  }
  glslang::FinalizeProcess();
  return write(job->depfile, dependencies(*job, files)) ? 0 : 1;
}
