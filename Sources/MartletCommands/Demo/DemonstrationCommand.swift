internal import MartletProvider

/// A demonstration of a plugin as a `curl` command that works in any shell.
struct DemonstrationCommand {
    /// What is behind `#` above the command.
    let expectation: String
    /// Options of `curl`, quoted.
    let options: [String]
    /// The path at the gateway; `nil` if the request goes to the simulator.
    let path: String?
    /// The quoted address, if the request goes to the simulator.
    let address: String?

    /// - Parameter url: the base URL of the simulator.
    /// - Returns: `nil` if a part could not be printed, or would be more than one command.
    init?(_ demonstration: Demonstration, of url: String) {
        let parts = [demonstration.summary, demonstration.method, demonstration.body ?? ""]
        guard parts.allSatisfy(Self.isPrintable), (100...599).contains(demonstration.status) else { return nil }
        expectation = "\(demonstration.status): \(demonstration.summary)"
        var options = demonstration.method == "GET" ? [] : ["-X \(Self.quoted(demonstration.method))"]
        for header in demonstration.headers {
            guard let option = Self.option(header, of: url) else { return nil }
            options.append(option)
        }
        if let body = demonstration.body { options.append("--data-raw \(Self.quoted(body))") }
        self.options = options
        switch demonstration.target {
        case .gateway(let path):
            guard Self.isPath(path) else { return nil }
            (self.path, address) = (path, nil)
        case .simulator(let path):
            guard Self.isPath(path) else { return nil }
            (self.path, address) = (nil, "'\(url)\(path)'")
        }
    }

    private static func option(_ header: Demonstration.Header, of url: String) -> String? {
        guard isName(header.name), isPrintable(header.value) else { return nil }
        guard let source = header.source else { return "-H \(quoted("\(header.name): \(header.value)"))" }
        guard isPath(source) else { return nil }
        return "-H \(quoted("\(header.name): \(header.value)"))\"$(curl -s '\(url)\(source)')\""
    }

    /// The text in single quotes, which a shell does not look into.
    private static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: #"'\''"#))'" }

    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            ![.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
        }
    }

    /// The name of a header that curl takes for nothing else.
    private static func isName(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D
            }
    }

    /// A path, perhaps with a query, that needs no quotes but those around a URL, and is no pattern of curl.
    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !Array("'[]{}".utf8).contains($0) }
    }
}
