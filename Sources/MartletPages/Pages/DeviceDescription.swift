internal import MartletCore

/// What a session's device is called: its name, or what its user agent says.
struct DeviceDescription {
    private let name: String?
    private let userAgent: String

    init(name: String?, userAgent: String?) {
        self.name = name.flatMap { DisplayName.clean([$0]) }
        self.userAgent = userAgent ?? ""
    }

    /// In the order in which they are looked for: browsers name others that they are compatible with.
    private static let browsers = [
        ("MicroMessenger/", "WeChat"), ("Edg/", "Edge"), ("EdgA/", "Edge"), ("EdgiOS/", "Edge"), ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"),
        ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"),
    ]
    private static let systems = [
        ("iPhone", "iPhone"), ("iPad", "iPad"), ("HarmonyOS", "HarmonyOS"), ("Android", "Android"),
        ("Windows", "Windows"), ("Macintosh", "Mac"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
    ]

    func text(_ words: Words) -> String {
        if let name { return name }
        let browser = Self.browsers.first { userAgent.contains($0.0) }?.1
        let system = Self.systems.first { userAgent.contains($0.0) }?.1
        switch (browser, system) {
        case (let browser?, let system?): return words(.deviceOn, ["browser": browser, "system": system])
        case (let one?, nil), (nil, let one?): return one
        case (nil, nil): return words(.unknownDevice)
        }
    }
}
