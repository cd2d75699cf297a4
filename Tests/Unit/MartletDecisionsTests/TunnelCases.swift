import MartletTesting

@testable import MartletDecisions

/// WebSockets.
extension TunnelCase {
    // MARK: Bytes

    static let bytes: [TunnelCase] = [
        TunnelCase(
            "whole frames",
            [
                (.client(WSFrame.twoClientTexts), ["up 16"]), (.upstream(WSFrame.serverText), ["down 4"]),
                (.client([]), []), (.upstream([]), []),
            ]),
        TunnelCase(
            "a payload in pieces",
            [
                (.client(WSFrame.clientTextStart), ["up 7"]), (.client(WSFrame.clientTextEnd), ["up 1"]),
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.upstream(WSFrame.serverTextEnd), ["down 1"]),
            ]),
        TunnelCase(
            "a header in pieces",
            [
                (.client(WSFrame.clientTextAndHeader), ["up 8"]),
                (.client(WSFrame.clientTextRest), ["up header 6", "up 2"]),
                (.upstream([0x81]), []), (.upstream(WSFrame.serverTextRest), ["down header 2", "down 2"]),
            ]),
        TunnelCase(
            "a violation of the client",
            [
                (.client(WSFrame.clientTextAndServerText), ["up 8", "close up 1002", "close down 1002"]),
                // Only the first one counts.
                (.client(WSFrame.serverText), []), (.upstream(WSFrame.clientText), []),
            ]),
        TunnelCase(
            "a violation of the upstream",
            [(.upstream(WSFrame.serverTextAndClientText), ["down 4", "close up 1002", "close down 1002"])]),
        TunnelCase(
            "a violation while the other side has a frame in progress",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.client(WSFrame.serverText), ["close up 1002"]),
                (.upstream(WSFrame.serverTextEnd), ["down 1", "close down 1002"]),
            ]),
    ]

    // MARK: Close

    static let handshakes: [TunnelCase] = [
        TunnelCase(
            "the client closes",
            [
                (.client(WSFrame.clientClose), ["up 8"]), (.upstream(WSFrame.serverClose), ["down 4"]),
                (.end(.revoked), []), (.upstreamCloses, ["fin down"]), (.clientCloses, ["fin up", "finish"]),
            ]),
        TunnelCase(
            "the upstream closes",
            [
                (.upstream(WSFrame.serverClose), ["down 4"]), (.client(WSFrame.clientClose), ["up 8"]),
                (.clientCloses, ["fin up"]), (.upstreamCloses, ["fin down", "finish"]),
            ]),
        TunnelCase(
            "nothing after a side's Close is forwarded",
            [
                (.client(WSFrame.clientCloseAndText), ["up 8"]), (.client(WSFrame.clientText), []),
                (.upstream(WSFrame.serverCloseAndText), ["down 4"]), (.upstream(WSFrame.serverText), []),
            ]),
        TunnelCase(
            "both have closed, and the connections stay open",
            [
                (.client(WSFrame.clientClose), ["up 8"]), (.upstream(WSFrame.serverClose), ["down 4"]),
                (.wait(999), []),
                (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "both have closed, and the client does not read",
            [
                (.client(WSFrame.clientClose), ["up 8"]), (.clientStalls, []),
                (.upstream(WSFrame.serverClose), ["down 4"]),
                (.clientReads, []), (.wait(999), []), (.wait(1), ["abort"]),
            ]),
        TunnelCase(
            "the upstream never replies to the client's Close",
            [
                (.client(WSFrame.clientClose), ["up 8"]), (.wait(59_999), []),
                (.wait(1), ["end idle", "close down 1001", "fin down"]),
            ]),
    ]

    static let ends: [TunnelCase] = [
        TunnelCase(
            "between frames, the client replies first",
            [
                (.end(.revoked), ["close up 1001", "close down 4401"]), (.end(.idle), []),
                (.client(WSFrame.clientClose), ["fin down"]), (.upstream(WSFrame.serverClose), ["fin up", "finish"]),
            ]),
        TunnelCase(
            "between frames, the upstream replies first",
            [
                (.end(.expired), ["close up 1001", "close down 4401"]),
                (.upstream(WSFrame.serverTextAndClose), ["fin up"]),
                (.client(WSFrame.clientTextAndClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "between frames, and the sides disconnect",
            [
                (.end(.aged), ["close up 1001", "close down 1001"]), (.clientCloses, ["fin up", "fin down"]),
                (.clientCloses, []), (.upstreamCloses, ["finish"]),
            ]),
        TunnelCase(
            "between frames, and no side replies",
            [(.end(.idle), ["close up 1001", "close down 1001"]), (.wait(399), []), (.wait(1), ["finish"])]),
        TunnelCase(
            "between frames, and the client does not read",
            [
                (.clientStalls, []), (.end(.idle), ["close up 1001", "close down 1001"]), (.clientReads, []),
                (.client(WSFrame.clientClose), []), (.upstream(WSFrame.serverClose), ["fin up"]),
                (.wait(1000), ["abort"]),
            ]),
        TunnelCase(
            "within a frame of the client",
            [
                (.client(WSFrame.clientTextStart), ["up 7"]), (.end(.idle), ["close down 1001"]),
                (.client(WSFrame.clientTextEndAndText), ["up 1", "close up 1001"]),
                (.wait(399), []), (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "within a long frame of the client",
            [
                (.client([0x82, 0x84, 1, 2, 3, 4, 5]), ["up 7"]), (.end(.idle), ["close down 1001"]),
                (.client([6]), ["up 1"]), (.client([7, 8]), ["up 2", "close up 1001"]),
                (.client(WSFrame.clientText), []),
            ]),
        TunnelCase(
            "within a frame of the client that does not end",
            [
                (.client(WSFrame.clientTextStart), ["up 7"]), (.end(.idle), ["close down 1001"]), (.wait(199), []),
                (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "within a frame of the upstream",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.expired), ["close up 1001"]),
                (.upstream(WSFrame.serverTextEndAndText), ["down 1", "close down 4401"]),
                (.upstream(WSFrame.serverText), []), (.upstream(WSFrame.serverClose), ["fin up"]),
            ]),
        TunnelCase(
            "within a frame of the upstream that does not end",
            [
                (.upstream(WSFrame.serverTextStart), ["down 3"]), (.end(.expired), ["close up 1001"]), (.wait(199), []),
                (.wait(1), ["abort"]),
            ]),
        TunnelCase(
            "within a header, which is not forwarded any more",
            [
                (.client([0x81]), []), (.upstream([0x81]), []), (.end(.idle), ["close up 1001", "close down 1001"]),
                (.client(WSFrame.clientTextRest), []), (.upstream(WSFrame.serverTextRest), []),
            ]),
        TunnelCase(
            "after the client's Close",
            [
                (.client(WSFrame.clientClose), ["up 8"]), (.end(.draining), ["close down 1001", "fin down"]),
                (.upstream(WSFrame.serverClose), ["fin up", "finish"]),
            ]),
        TunnelCase(
            "after the upstream's Close",
            [
                (.upstream(WSFrame.serverClose), ["down 4"]), (.end(.draining), ["close up 1001", "fin up"]),
                (.client(WSFrame.clientClose), ["fin down", "finish"]),
            ]),
        TunnelCase(
            "with output that the upstream has not accepted",
            [
                (.upstreamStalls, []), (.end(.idle), ["close up 1001", "close down 1001"]),
                (.client(WSFrame.clientClose), ["fin down"]), (.upstream(WSFrame.serverClose), []),
                (.upstreamFlushed, ["fin up", "finish"]),
            ]),
        TunnelCase(
            "after the client has disconnected",
            [
                (.clientCloses, ["left", "fin up"]), (.end(.idle), ["close down 1001", "fin down"]),
                (.upstreamCloses, ["finish"]),
            ]),
    ]

    // MARK: Disconnects

    static let disconnects: [TunnelCase] = [
        TunnelCase(
            "the client leaves, and the upstream follows",
            [
                (.clientCloses, ["left", "fin up"]), (.clientCloses, []), (.upstream(WSFrame.serverText), ["down 4"]),
                (.upstreamCloses, ["left", "fin down", "finish"]),
            ]),
        TunnelCase(
            "the client leaves, and the upstream does not notice",
            [(.clientCloses, ["left", "fin up"]), (.wait(499), []), (.wait(1), ["finish"])]),
        TunnelCase(
            "the client leaves before the upstream has accepted everything",
            [(.upstreamStalls, []), (.clientCloses, ["left"]), (.upstreamFlushed, ["fin up"])]),
        TunnelCase(
            "the upstream leaves, and the client follows",
            [
                (.upstreamCloses, ["left", "fin down"]), (.client(WSFrame.clientText), ["up 8"]),
                (.clientCloses, ["left", "fin up", "finish"]),
            ]),
        TunnelCase(
            "the upstream leaves, and the client does not notice",
            [(.upstreamCloses, ["left", "fin down"]), (.wait(999), []), (.wait(1), ["finish"])]),
        TunnelCase(
            "the upstream leaves a client that reads slowly",
            [
                (.clientStalls, []), (.upstreamCloses, ["left"]), (.wait(900), []), (.clientReads, []),
                (.wait(999), []), (.wait(1), ["abort"]),
            ]),
        TunnelCase(
            "the upstream leaves a client that reads everything at last",
            [
                (.clientStalls, []), (.upstreamCloses, ["left"]), (.wait(900), []), (.clientReads, []),
                (.wait(900), []), (.clientFlushed, ["fin down"]), (.wait(1), ["finish"]),
            ]),
        TunnelCase(
            "the client leaves after its Close",
            [(.client(WSFrame.clientClose), ["up 8"]), (.clientCloses, ["fin up"]), (.wait(500), ["finish"])]),
        TunnelCase(
            "an earlier deadline stays",
            [
                (.clientCloses, ["left", "fin up"]), (.wait(400), []), (.upstreamStalls, []),
                (.upstreamCloses, ["left", "fin down"]), (.wait(99), []), (.wait(1), ["finish"]),
            ]),
    ]
}

/// Other protocols.
extension TunnelCase {
    static let others: [TunnelCase] = [
        TunnelCase(
            "the client closes its direction first",
            [
                (.client(WSFrame.clientText), ["up 8"]), (.clientCloses, ["fin up"]),
                (.upstream([1, 2, 3]), ["down 3"]),
                (.wait(10_000), []), (.upstream([4]), ["down 1"]), (.upstreamCloses, ["fin down", "finish"]),
            ]),
        TunnelCase(
            "the upstream closes its direction first",
            [
                (.upstreamCloses, ["fin down"]), (.wait(10_000), []), (.client([0xFF]), ["up 1"]),
                (.clientCloses, ["fin up", "finish"]),
            ]),
        TunnelCase(
            "a direction is closed when everything was sent",
            [
                (.upstreamStalls, []), (.clientStalls, []), (.clientCloses, []), (.upstreamCloses, []),
                (.upstreamFlushed, ["fin up"]), (.clientFlushed, ["fin down", "finish"]),
            ]),
        TunnelCase(
            "what looks like a Close frame is not one",
            [(.client(WSFrame.clientCloseAndByte), ["up 9"]), (.client([1]), ["up 1"])]),
        TunnelCase("no bytes", [(.client([]), []), (.upstream([]), [])]),
        TunnelCase("ends by a reset", [(.end(.expired), ["abort"]), (.end(.expired), [])]),
        TunnelCase("is idle", [(.wait(59_999), []), (.wait(1), ["end idle", "abort"])]),
        TunnelCase("is not ended by a drain", [(.drain, []), (.wait(1000), [])]),
    ]
}
