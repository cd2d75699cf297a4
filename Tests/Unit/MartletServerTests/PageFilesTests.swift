import BundledProviders
import Foundation
import MartletConfig
import MartletPages
import MartletProvider
import MartletTesting
import Testing

@testable import MartletServer

private let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"

@Suite struct `Files of the pages` {
    private let folder: TemporaryFolder
    private var file: String { "\(folder.path)/gw.yaml" }

    init() throws { folder = try TemporaryFolder() }

    private func write(_ text: String, to name: String) throws {
        let url = URL(fileURLWithPath: "\(folder.path)/\(name)")
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }

    private func writeTemplates(_ text: String = "<p>{{heading}}</p>", in name: String = "pages") throws {
        for path in PageTemplates.paths(in: name) { try write(text, to: path) }
    }

    private func configuration(_ pages: String, providers: String = "{}", more: String = "") -> String {
        """
        version: 1
        sessions: {}
        browser:
          origin: https://app.example.com
          pages: { \(pages) }
          \(more)
        providers: \(providers)
        upstreams: { echo: { endpoints: [builtin:echo] } }
        routes: [{ name: all, auth: none, upstream: echo }]
        """
    }

    /// Writes and reads a configuration.
    /// - Returns: the files, and the diagnostics except that the block is not supported yet.
    private func read(
        _ pages: String, providers: String = "{}", more: String = ""
    ) throws -> (files: PageFiles?, lines: [String]) {
        try write(configuration(pages, providers: providers, more: more), to: "gw.yaml")
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let kinds = registry.kinds.map(\.rawValue)
        let (_, diagnostics) = Blueprint.read(file, registry: registry, environment: { _ in nil })
        let loaded = GatewayConfiguration.load(path: file, environment: { _ in nil }, knownKinds: kinds)
        var found = Diagnostics()
        let files = loaded.configuration?.browser.map { PageFiles($0.pages, into: &found) }
        let lines = diagnostics.sorted.filter { $0.code != .configNotSupported && $0.severity == .error }
            .map { $0.description.replacing("\(folder.path)/", with: "") }
        return (files, lines)
    }

    @Test func `are none by default`() throws {
        let (files, lines) = try read("")
        #expect(lines == [] && files != nil && files?.logo == nil && files?.templates == nil)
    }

    @Test func `are found beside the configuration, and read again`() throws {
        try write(svg, to: "logo.svg")
        try writeTemplates()
        let (files, lines) = try read("logo_file: logo.svg, template_dir: pages")
        #expect(lines == [] && files?.templates != nil)
        let logo = try #require(files?.logo)
        #expect(logo.kind == .svg && logo.bytes == Array(svg.utf8) && logo.version.utf8.count == 16)
        let (same, _) = try read("logo_file: ./logo.svg, template_dir: pages/")
        #expect(same?.logo == logo && same?.templates != nil)
        try write("<!-- -->\(svg)", to: "logo.svg")
        try writeTemplates("{{")
        let (changed, errors) = try read("logo_file: logo.svg, template_dir: pages")
        #expect(changed?.logo?.version != logo.version && changed?.templates == nil && errors.count == 5)
    }

    @Test(arguments: [
        ("none.svg", "pages.logo_unreadable", "cannot read 'none.svg': No such file or directory"),
        (".", "pages.logo_unreadable", "cannot read '.': not a regular file"),
        ("text.svg", "pages.logo_unsupported", "'text.svg' is no SVG with a namespace, PNG, JPEG or WebP image"),
        ("empty.svg", "pages.logo_unsupported", "'empty.svg' is no SVG with a namespace, PNG, JPEG or WebP image"),
        ("large.svg", "pages.logo_too_large", "cannot read 'large.svg': larger than 256KiB"),
    ])
    func `have no logo that cannot be shown`(name: String, code: String, text: String) throws {
        try write("text", to: "text.svg")
        try write("", to: "empty.svg")
        try write("\(svg)<!--\(String(repeating: " ", count: PageLogo.maximumBytes))-->", to: "large.svg")
        let (files, lines) = try read("logo_file: \(name)")
        #expect(files?.logo == nil && lines == ["gw.yaml:5:23: error: logo_file: \(text) [\(code)]"])
    }

    @Test func `have every template, without errors`() throws {
        try writeTemplates()
        try FileManager.default.removeItem(atPath: "\(folder.path)/pages/account.html")
        try write("<p>\n ä{{nothing}}", to: "pages/message.html")
        try write("<form method=\"post\"></form>", to: "pages/register.html")
        try write(String(repeating: " ", count: 256 * 1024 + 1), to: "pages/signed-out.html")
        let (files, lines) = try read("template_dir: pages")
        #expect(files?.templates == nil)
        let names =
            "account, heading, language, languages, links, logo, name, nonce, request_id, return_to, sign_in, sign_out, "
            + "site, text"
        let key = "gw.yaml:5:26: error: template_dir: cannot read"
        let expected = [
            "\(key) 'pages/account.html': No such file or directory [pages.template_unreadable]",
            "\(key) 'pages/signed-out.html': larger than 256KiB [pages.template_too_large]",
            "pages/message.html:2:3: error: there is no 'nothing' here; there are: \(names) [pages.template_unknown_name]",
            "pages/register.html:1:6: error: this form has no field with the value {{csrf}} [pages.template_incomplete]",
        ]
        #expect(lines.sorted() == expected)
        let (_, gone) = try read("template_dir: nowhere")
        #expect(gone.count == 5 && gone.allSatisfy { $0.hasPrefix("\(key) 'nowhere/") })
    }

    @Test func `are watched`() throws {
        try write(configuration("logo_file: l.png, template_dir: pages"), to: "gw.yaml")
        let loaded = GatewayConfiguration.load(path: file, environment: { _ in nil }, knownKinds: [])
        let configuration = try #require(loaded.configuration)
        let pages = try #require(configuration.browser?.pages)
        let watched = configuration.source.files + PageFiles.unnamedFiles(pages)
        let names = ["l.png"] + ["sign-in", "register", "message", "signed-out", "account"].map { "pages/\($0).html" }
        #expect(watched.map(\.text) == names.map { "\(folder.path)/\($0)" })
    }

    @Test(arguments: [
        ("register: true", "{}", true), ("register: false", "{}", false),
        ("register: true", "{ staff: { kind: password, users: accounts } }", false),
        ("register: true", "{ staff: { kind: password, users: \"htpasswd:users\" } }", true),
        ("register: true", "{ apple: { kind: apple, audiences: [a] } }", true),
        ("register: true", "{ staff: { kind: password, nothing: 1 } }", false),
    ])
    func `come with accounts that can be created`(register: String, providers: String, isError: Bool) throws {
        try write("ada:$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n", to: "users")
        let (_, lines) = try read("", providers: providers, more: register)
        let error =
            "gw.yaml:6:13: error: register: needs a provider for passwords whose users are in the account store "
            + "[config.missing_key]"
        #expect(lines.contains(error) == isError, "\(lines)")
    }

    @Test func `of the guide are read`() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let guide = try String(
            contentsOf: here.appendingPathComponent("../../../Sources/MartletServer/Documentation.docc/Pages.md"),
            encoding: .utf8)
        let block = try #require(guide.components(separatedBy: "```yaml\n").dropFirst().first)
            .components(separatedBy: "```")[0]
        let rest =
            "upstreams: { echo: { endpoints: [builtin:echo] } }\nroutes: [{ name: all, auth: none, upstream: echo }]\n"
        try write("version: 1\n\(block)\(rest)", to: "guide.yaml")
        try write(svg, to: "logo.svg")
        let (_, diagnostics) = Blueprint.read(
            "\(folder.path)/guide.yaml", registry: ProviderRegistry(), environment: { _ in nil })
        #expect(diagnostics.all.isEmpty, "\(diagnostics)")
    }
}
