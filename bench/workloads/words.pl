# A Perl program as they are written: hashes of arrays, text taken apart and put together, sorting.
use strict;
use warnings;

my ($rounds) = @ARGV;
my $seed = 1;
my $sum  = 0;
for my $round (1 .. $rounds) {
    my (%orders, @lines);
    for my $i (1 .. 2500) {
        $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
        push @lines, join(',', $i, 'customer ' . $seed % 1000, $seed % 977, 'text ' . 'x' x ($seed % 40));
    }
    for my $line (@lines) {
        my ($number, $customer, $price, $text) = split /,/, $line;
        push @{ $orders{$customer} }, { number => $number, price => $price, text => $text };
    }
    for my $customer (sort keys %orders) {
        my @sorted = sort { $a->{price} <=> $b->{price} } @{ $orders{$customer} };
        $sum += $sorted[0]{price} + scalar @sorted;
        $sum += length $1 if $sorted[-1]{text} =~ /(x+)$/;
    }
}
print "$sum\n";
