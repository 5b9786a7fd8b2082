# The formula of a Homebrew tap. `make release` fills in @URL@, @VERSION@ and @SHA256@ and puts it into dist/.
class Sampan < Formula
  include Language::Python::Virtualenv

  desc "Kubernetes you can pip install: API server, scheduler, controllers, kubelet"
  homepage "@URL@"
  url "@URL@/releases/download/v@VERSION@/sampan-@VERSION@.tar.gz"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    virtualenv_create(libexec, "python3.13", without_pip: false)
    system libexec/"bin/python", "-m", "pip", "install", "--prefer-binary", buildpath
    bin.install_symlink libexec/"bin/sampan", libexec/"bin/kubectl-sampan"
    man1.install_symlink libexec/"share/man/man1/sampan.1"
    generate_completions_from_executable(bin/"sampan", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sampan --version")
  end
end
