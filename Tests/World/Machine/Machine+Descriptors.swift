extension Machine {
    /// What a process has open, by kind; connections by whom they are with.
    package func descriptors(of process: Process) -> [(kind: String, count: Int)] {
        descriptors.kinds(of: process).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

extension Descriptors {
    /// What a process has open, by kind.
    func kinds(of process: Process) -> [String: Int] {
        var kinds: [String: Int] = [:]
        for number in files.indices {
            if let file = self[number], file.owner === process { kinds[kind(file), default: 0] += 1 }
        }
        return kinds
    }

    private func kind(_ file: File) -> String {
        guard let stream = file as? Stream else { return "\(type(of: file))" }
        if !stream.link.server.path.isEmpty { return "local Stream" }
        return stream.isServer ? "client's Stream to \(stream.local.port)" : "Stream to port \(stream.remote.port)"
    }
}
