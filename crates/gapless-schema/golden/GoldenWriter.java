// Writes one message of each schema with the official encoders; make.sh runs it.
// tests/promises/golden_bytes_match.rs holds the same values.

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;

public final class GoldenWriter
{
    private static Path folder;

    public static void main(final String[] arguments) throws IOException
    {
        folder = Path.of(arguments[0]);
        car();
        emptyCar();
        truck();
        scalars();
        arrays();
        choices();
        padded();
        keywords();
        empty();
        big();
        orderV0();
        noteV0();
        orderV2();
        noteV2();
        lateV2();
    }

    private static UnsafeBuffer buffer()
    {
        return new UnsafeBuffer(new byte[4096]);
    }

    private static void write(final String name, final UnsafeBuffer buffer, final int length) throws IOException
    {
        final StringBuilder text = new StringBuilder();
        for (int index = 0; index < length; index++)
        {
            text.append(String.format("%02x", buffer.getByte(index)));
            text.append(index % 32 == 31 || index == length - 1 ? '\n' : ' ');
        }
        Files.writeString(folder.resolve(name + ".hex"), text.toString());
    }

    private static void car() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.car.MessageHeaderEncoder header = new gapless.car.MessageHeaderEncoder();
        final gapless.car.CarEncoder car = new gapless.car.CarEncoder().wrapAndApplyHeader(buffer, 0, header);
        car.serialNumber(12345).modelYear((short)2005).available(gapless.car.Availability.T).code(gapless.car.Code.A)
            .vehicleCode("abcdef");
        car.engine().capacity((short)4200).numCylinders((byte)8).maxRpm(gapless.car.EngineEncoder.maxRpmNullValue())
            .manufacturerCode("abc").fuel("");
        final gapless.car.CarEncoder.SomeNumbersEncoder numbers = car.someNumbersCount(5);
        for (int number = 0; number < 5; number++)
        {
            numbers.next().value(number);
        }
        car.extrasCount(2).next().value(gapless.car.Extra.sportsPack).next().value(gapless.car.Extra.sunRoof);
        car.fuelFigureCount(3)
            .next().speed((short)30).mpg(35.9f)
            .next().speed((short)55).mpg(49.0f)
            .next().speed((short)75).mpg(40.0f);
        final gapless.car.CarEncoder.PerformanceFigureEncoder performance = car.performanceFigureCount(2);
        performance.next().octaneRating((byte)95).accelerationCount(3)
            .next().mph((short)30).seconds(4.0f)
            .next().mph((short)60).seconds(7.5f)
            .next().mph((short)100).seconds(12.2f);
        performance.next().octaneRating((byte)99).accelerationCount(3)
            .next().mph((short)30).seconds(3.8f)
            .next().mph((short)60).seconds(7.1f)
            .next().mph((short)100).seconds(11.8f);
        car.manufacturer("MANUFACTURER").model("MODEL");
        write("car", buffer, header.encodedLength() + car.encodedLength());
    }

    private static void emptyCar() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.car.MessageHeaderEncoder header = new gapless.car.MessageHeaderEncoder();
        final gapless.car.CarEncoder car = new gapless.car.CarEncoder().wrapAndApplyHeader(buffer, 0, header);
        car.serialNumber(gapless.car.CarEncoder.serialNumberNullValue())
            .modelYear(gapless.car.CarEncoder.modelYearNullValue())
            .available(gapless.car.Availability.NULL_VAL).code(gapless.car.Code.NULL_VAL).vehicleCode("");
        car.engine().capacity(gapless.car.EngineEncoder.capacityNullValue())
            .numCylinders(gapless.car.EngineEncoder.numCylindersNullValue())
            .maxRpm(gapless.car.EngineEncoder.maxRpmNullValue()).manufacturerCode("").fuel("");
        car.someNumbersCount(0);
        car.extrasCount(0);
        car.fuelFigureCount(0);
        car.performanceFigureCount(0);
        car.manufacturer("").model("");
        write("car-empty", buffer, header.encodedLength() + car.encodedLength());
    }

    private static void truck() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.truck.MessageHeaderEncoder header = new gapless.truck.MessageHeaderEncoder();
        final gapless.truck.TruckEncoder truck = new gapless.truck.TruckEncoder().wrapAndApplyHeader(buffer, 0, header);
        truck.serialNumber(1234567890123L).modelYear(2013).available(gapless.truck.BooleanType.T)
            .code(gapless.truck.Model.A).putAxleLoads(7000, 8000, 4000000000L, 0).vehicleCode("ab12")
            .extras().sportsPack(true).cruiseControl(true);
        truck.engine().capacity(12000).numCylinders((short)6).manufacturerCode("123").efficiency((byte)35)
            .boosterEnabled(gapless.truck.BooleanType.T);
        truck.engine().booster().boostType(gapless.truck.BoostType.NITROUS).horsePower((short)200);
        truck.engine().sump().oil(gapless.truck.SumpEncoder.oilNullValue()).alarms().low(true).hot(true);
        truck.price().mantissa(-9999999L);
        truck.listPrice().mantissa(Long.MIN_VALUE);
        truck.fuelFiguresCount(3)
            .next().speed(30).mpg(35.9f).usageDescription("Urban Cycle")
            .next().speed(55).mpg(49.0f).usageDescription("")
            .next().speed(75).mpg(40.0f).usageDescription("Highway Cycle");
        final gapless.truck.TruckEncoder.PerformanceFiguresEncoder performance = truck.performanceFiguresCount(2);
        performance.next().octaneRating((short)95).accelerationCount(2)
            .next().mph(30).seconds(4.0f)
            .next().mph(60).seconds(7.5f);
        performance.next().octaneRating((short)99).accelerationCount(0);
        truck.manufacturer("Gr\u00fc\u00dfe").model("Caf\u00e9").putActivationCode(new byte[]{ 0, 1, (byte)0xff }, 0, 3);
        write("truck", buffer, header.encodedLength() + truck.encodedLength());
    }

    private static void scalars() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.ScalarsEncoder scalars =
            new gapless.numbers.ScalarsEncoder().wrapAndApplyHeader(buffer, 0, header);
        scalars.aChar((byte)'x').anInt8((byte)-1).anInt16((short)-2).anInt32(-3).anInt64(-4)
            .aUint8((short)250).aUint16(65000).aUint32(4000000000L).aUint64(-2L).aFloat(1.5f).aDouble(-2.25)
            .maybeChar(gapless.numbers.ScalarsEncoder.maybeCharNullValue())
            .maybeInt8(gapless.numbers.ScalarsEncoder.maybeInt8NullValue())
            .maybeInt16(gapless.numbers.ScalarsEncoder.maybeInt16NullValue())
            .maybeInt32(gapless.numbers.ScalarsEncoder.maybeInt32NullValue())
            .maybeInt64(gapless.numbers.ScalarsEncoder.maybeInt64NullValue())
            .maybeUint8(gapless.numbers.ScalarsEncoder.maybeUint8NullValue())
            .maybeUint16(gapless.numbers.ScalarsEncoder.maybeUint16NullValue())
            .maybeUint32(gapless.numbers.ScalarsEncoder.maybeUint32NullValue())
            .maybeUint64(gapless.numbers.ScalarsEncoder.maybeUint64NullValue())
            .maybeFloat(gapless.numbers.ScalarsEncoder.maybeFloatNullValue())
            .maybeDouble(gapless.numbers.ScalarsEncoder.maybeDoubleNullValue())
            .minusOneIsNull(gapless.numbers.ScalarsEncoder.minusOneIsNullNullValue())
            .zeroIsNull(gapless.numbers.ScalarsEncoder.zeroIsNullNullValue())
            .otherIsNull(gapless.numbers.ScalarsEncoder.otherIsNullNullValue())
            .neverNull(-1).temperature(-40.5f)
            .maybeTemperature(gapless.numbers.ScalarsEncoder.maybeTemperatureNullValue())
            .sendingTime(1700000000000000000L);
        write("numbers-scalars", buffer, header.encodedLength() + scalars.encodedLength());
    }

    private static void arrays() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.ArraysEncoder arrays =
            new gapless.numbers.ArraysEncoder().wrapAndApplyHeader(buffer, 0, header);
        arrays.putInt8s((byte)-1, (byte)0, (byte)1)
            .putUint8s((short)1, (short)2, (short)254, (short)255)
            .putInt16s((short)-300, (short)300).putUint16s(1, 65535).putInt32s(-70000, 70000)
            .putUint32s(1, 4294967295L).putInt64s(-5000000000L, 5000000000L).putUint64s(1, -1)
            .putFloats(0.5f, -0.5f, 1e10f).putDoubles(Math.PI, -1e300)
            .putNoInt16s(Short.MIN_VALUE, Short.MIN_VALUE).putSomeInt16s(Short.MIN_VALUE, (short)7)
            .putNoFloats(Float.NaN, Float.NaN).putNoBytes((short)255, (short)255)
            .latin("\u00e9t\u00e9");
        final byte[] text = "h\u00e9llo".getBytes(StandardCharsets.UTF_8);
        arrays.putUtf8(java.util.Arrays.copyOf(text, 8), 0).putUtf8Bytes(text, 0, text.length).noText("");
        write("numbers-arrays", buffer, header.encodedLength() + arrays.encodedLength());
    }

    private static void choices() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.ChoicesEncoder choices =
            new gapless.numbers.ChoicesEncoder().wrapAndApplyHeader(buffer, 0, header);
        choices.letter(gapless.numbers.Letter.Zulu).maybeLetter(gapless.numbers.Letter.NULL_VAL)
            .side(gapless.numbers.Side.SELL_SHORT).maybeSide(gapless.numbers.Side.NULL_VAL)
            .otherSide(gapless.numbers.Side.CROSS).wide(gapless.numbers.Wide.many);
        choices.bits8().first(true).last(true);
        choices.bits16().last(true);
        choices.bits32().first(true).last(true);
        choices.bits64().last(true);
        choices.sidesCount(2).next().value(gapless.numbers.Side.BUY).next().value(gapless.numbers.Side.SELL);
        choices.wholesCount(2).next().value(1).next().value(-2L);
        choices.partsCount(0);
        write("numbers-choices", buffer, header.encodedLength() + choices.encodedLength());
    }

    private static void padded() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.PaddedEncoder padded =
            new gapless.numbers.PaddedEncoder().wrapAndApplyHeader(buffer, 0, header);
        padded.near((short)1).far(2).spaced().first((short)3).second(4).third((short)5);
        padded.entriesCount(2).next().here((short)6).next().here((short)7);
        write("numbers-padded", buffer, header.encodedLength() + padded.encodedLength());
    }

    private static void keywords() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.KeywordsEncoder keywords =
            new gapless.numbers.KeywordsEncoder().wrapAndApplyHeader(buffer, 0, header);
        keywords.type((short)1).match((short)2).self((short)3).parse((short)4).next((short)5).fooBar((short)6)
            .foo_bar((short)7).result((short)8);
        write("numbers-keywords", buffer, header.encodedLength() + keywords.encodedLength());
    }

    private static void empty() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.numbers.MessageHeaderEncoder header = new gapless.numbers.MessageHeaderEncoder();
        final gapless.numbers.EmptyEncoder empty =
            new gapless.numbers.EmptyEncoder().wrapAndApplyHeader(buffer, 0, header);
        write("numbers-empty", buffer, header.encodedLength() + empty.encodedLength());
    }

    private static void big() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.big.endian.NarrowHeaderEncoder header = new gapless.big.endian.NarrowHeaderEncoder();
        final gapless.big.endian.BigEncoder big =
            new gapless.big.endian.BigEncoder().wrapAndApplyHeader(buffer, 0, header);
        big.whole(0x0102030405060708L).part(1.5f).putShorts((short)1, (short)-2, (short)3)
            .level(gapless.big.endian.Level.high).marks().one(true).twenty(true);
        big.point().x(-5).y(Double.NaN);
        big.maybe(gapless.big.endian.BigEncoder.maybeNullValue());
        final gapless.big.endian.BigEncoder.OuterEncoder outer = big.outerCount(2);
        outer.next().id(1);
        final gapless.big.endian.BigEncoder.OuterEncoder.MiddleEncoder middle = outer.middleCount(1);
        middle.next().id(2);
        middle.innerCount(2).next().id(3).putNote(new byte[]{ 1, 2 }, 0, 2).next().id(4).putNote(new byte[0], 0, 0);
        middle.note("middle");
        outer.note("outer");
        outer.next().id(5).middleCount(0);
        outer.note("");
        big.plainCount(3).next().id((byte)1).next().id((byte)-1).next().id((byte)2);
        big.putSmall(new byte[]{ 9, 8, 7 }, 0, 3).middle("mittel").wide("weit");
        write("big-endian", buffer, header.encodedLength() + big.encodedLength());
    }

    private static void orderV0() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.extension.v0.MessageHeaderEncoder header = new gapless.extension.v0.MessageHeaderEncoder();
        final gapless.extension.v0.OrderEncoder order =
            new gapless.extension.v0.OrderEncoder().wrapAndApplyHeader(buffer, 0, header);
        order.orderId(77).side(gapless.extension.v0.Side.sell).venue().country(49);
        final gapless.extension.v0.OrderEncoder.LegsEncoder legs = order.legsCount(2);
        legs.next().ratio(1).allocationsCount(1).next().account(100);
        legs.next().ratio(2).allocationsCount(2).next().account(200).next().account(201);
        write("extension-v0-order", buffer, header.encodedLength() + order.encodedLength());
    }

    private static void noteV0() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.extension.v0.MessageHeaderEncoder header = new gapless.extension.v0.MessageHeaderEncoder();
        final gapless.extension.v0.NoteEncoder note =
            new gapless.extension.v0.NoteEncoder().wrapAndApplyHeader(buffer, 0, header);
        note.at(5).text("old");
        write("extension-v0-note", buffer, header.encodedLength() + note.encodedLength());
    }

    private static void orderV2() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.extension.v2.MessageHeaderEncoder header = new gapless.extension.v2.MessageHeaderEncoder();
        final gapless.extension.v2.OrderEncoder order =
            new gapless.extension.v2.OrderEncoder().wrapAndApplyHeader(buffer, 0, header);
        order.orderId(77).side(gapless.extension.v2.Side.cross).venue().country(49).segment(7);
        order.quantity(1000).flags().hidden(true).postOnly(true);
        order.otherSide(gapless.extension.v2.Side.NULL_VAL).limits().low(-1).high(1);
        order.putLevels((short)3, (short)4).text("text");
        final gapless.extension.v2.OrderEncoder.LegsEncoder legs = order.legsCount(1);
        legs.next().ratio(1).price(2.5).allocationsCount(2)
            .next().account(100).share((short)60).next().account(101).share((short)40);
        order.partiesCount(1).next().role((short)3).id(9);
        order.comment("new");
        write("extension-v2-order", buffer, header.encodedLength() + order.encodedLength());
    }

    private static void noteV2() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.extension.v2.MessageHeaderEncoder header = new gapless.extension.v2.MessageHeaderEncoder();
        final gapless.extension.v2.NoteEncoder note =
            new gapless.extension.v2.NoteEncoder().wrapAndApplyHeader(buffer, 0, header);
        note.at(6).text("new").author("me");
        write("extension-v2-note", buffer, header.encodedLength() + note.encodedLength());
    }

    private static void lateV2() throws IOException
    {
        final UnsafeBuffer buffer = buffer();
        final gapless.extension.v2.MessageHeaderEncoder header = new gapless.extension.v2.MessageHeaderEncoder();
        final gapless.extension.v2.LateEncoder late =
            new gapless.extension.v2.LateEncoder().wrapAndApplyHeader(buffer, 0, header);
        late.first((short)1).second((short)2);
        write("extension-v2-late", buffer, header.encodedLength() + late.encodedLength());
    }
}
